"""A version of a model as `TextModel`, for work inside the server."""

from __future__ import annotations

from typing import Any

from tensorflow_serving.apis import predict_pb2

from serving import grpc_services, protos
from serving.batching import GivenUp
from serving.connection import BATCH_SIZE
from serving.errors import RequestRefused
from serving.limits import Limits
from serving.messages import Messages, Question
from serving.servable import Servable
from serving.text_model import TextModel


class ServableModel(TextModel):
    """A loaded version, asked as a client asks it. It only predicts.

    Args:
        name: the model's name, for sentences.
        servable: the version; it must not be retired meanwhile.
        limits: the limits of one text and one batch.
        given_up: whether the client has stopped waiting.
    """

    def __init__(self, name: str, servable: Servable, limits: Limits, given_up: GivenUp) -> None:
        size = min(BATCH_SIZE, limits.max_batch_size)
        self._messages = Messages(name, "", None, size, by_length=True)
        self._servable = servable
        self._limits = limits
        self._given_up = given_up

    def close(self) -> None:
        """Does nothing: the server keeps the version."""

    def _answer(self, question: Question[Any], timeout: float | None) -> Any:
        if question.method != "Predict":
            raise NotImplementedError(question.method)
        request = predict_pb2.PredictRequest.FromString(question.make().SerializeToString())
        try:
            response = grpc_services.answer(
                self._servable.predict, request, self._limits, self._given_up
            )
        except RequestRefused as refused:
            raise question.failure(refused.sentence, refused.code) from None
        message = protos.message("PredictResponse")
        return question.read(message.FromString(response.SerializeToString()))
