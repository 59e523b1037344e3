"""TensorFlow Serving's two gRPC services, on a `Registry` of models."""

import functools
import logging
from collections.abc import Callable
from typing import Any, TypeVar

import grpc
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_management_pb2,
    model_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from serving import model_config
from serving.errors import RequestRefused, ServeError, cancelled, invalid
from serving.limits import Limits
from serving.observing import REQUEST_ID, Observer, Request
from serving.registry import Registry

logger = logging.getLogger(__name__)

T = TypeVar("T")
# A method of a service; its arguments are itself, a request, its context, and the `Request` that is
# observed.
_Method = Callable[[Any, Any, grpc.ServicerContext, Request], Any]

# A gRPC status is sent in an HTTP/2 header of 8 KiB; texts quoted from a request may be longer.
_MAX_SENTENCE = 500


def answer(work: Callable[..., T], *arguments: object) -> T:
    """Calls a function of a request.

    Raises:
        RequestRefused: the request is refused, or the server failed; then its log has the failure.
            Its sentence can be sent.
    """
    try:
        return work(*arguments)
    except RequestRefused as refused:
        code, sentence = refused.code, refused.sentence
    except Exception:
        logger.exception("A %s request failed.", getattr(work, "__name__", "served"))
        code, sentence = (
            grpc.StatusCode.INTERNAL,
            "The server failed on this request; its log says why.",
        )
    # TensorFlow may quote bytes that are not text, which gRPC could not send.
    sentence = sentence.encode("utf-8", "backslashreplace").decode("utf-8")
    if len(sentence) > _MAX_SENTENCE:
        sentence = sentence[: _MAX_SENTENCE - 1] + "…"
    raise RequestRefused(code, sentence)


def _answering(method: _Method) -> Callable[[Any, Any, grpc.ServicerContext], Any]:
    """Makes a service method end in an answer or a gRPC status, never in a traceback.

    The observer sees each call.
    """

    @functools.wraps(method)
    def wrapper(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
        id_from_client = dict(context.invocation_metadata() or ()).get(REQUEST_ID)
        with self._observer.request("grpc", method.__name__, id_from_client) as seen:
            context.set_trailing_metadata(((REQUEST_ID, seen.id),))
            try:
                return answer(method, self, request, context, seen)
            except RequestRefused as refused:
                seen.code = refused.code.name
                return context.abort(refused.code, refused.sentence)

    return wrapper


def _given_up(context: grpc.ServicerContext) -> RequestRefused | None:
    """Returns the refusal of a call whose client has stopped waiting; None while it waits."""
    left = context.time_remaining()
    if left is not None and left <= 0:
        return RequestRefused(
            grpc.StatusCode.DEADLINE_EXCEEDED,
            "The deadline passed before the request was answered.",
        )
    if not context.is_active():
        return cancelled()
    return None


def _not_offered(name: str) -> Callable[[Any, Any, grpc.ServicerContext], Any]:
    def method(self: Any, request: Any, context: grpc.ServicerContext, seen: Request) -> Any:
        raise RequestRefused(
            grpc.StatusCode.UNIMPLEMENTED, f"This server does not offer {name}; use Predict."
        )

    method.__name__ = name
    return _answering(method)


def count_texts(request: predict_pb2.PredictRequest) -> int | None:
    """Returns the number of texts in a `PredictRequest`; None if its inputs have no shape."""
    sizes = [
        tensor.tensor_shape.dim[0].size
        for tensor in request.inputs.values()
        if tensor.tensor_shape.dim
    ]
    return max(sizes, default=None)


def metadata(
    registry: Registry, spec: model_pb2.ModelSpec
) -> get_model_metadata_pb2.GetModelMetadataResponse:
    """Returns the `GetModelMetadataResponse` of the model that a `ModelSpec` names.

    Raises:
        RequestRefused: there is no such model.
    """
    model, version = registry.find(spec)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    response = get_model_metadata_pb2.GetModelMetadataResponse()
    with model.use(version) as servable:
        for name, signature in servable.signature_defs.items():
            signatures.signature_def[name].CopyFrom(signature)
        response.model_spec.version.value = servable.version
    response.model_spec.name = model.name
    response.metadata["signature_def"].Pack(signatures)
    return response


def status(
    registry: Registry, spec: model_pb2.ModelSpec
) -> get_model_status_pb2.GetModelStatusResponse:
    """Returns the `GetModelStatusResponse` of a `ModelSpec`'s model, the latest version first.

    Raises:
        RequestRefused: there is no such model or version.
    """
    model, version = registry.find(spec, arriving=True)
    states = [state for state in model.states() if version in (None, state.version)]
    if not states:
        which = "any versions" if version is None else f"version {version}"
        raise RequestRefused(
            grpc.StatusCode.NOT_FOUND, f"Could not find {which} of model {model.name}."
        )
    response = get_model_status_pb2.GetModelStatusResponse()
    for state in states:
        entry = response.model_version_status.add(version=state.version, state=state.state)
        if state.error:
            entry.status.error_code = grpc.StatusCode.UNKNOWN.value[0]
            entry.status.error_message = state.error
    return response


class PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """`Predict` and `GetModelMetadata`."""

    def __init__(self, registry: Registry, limits: Limits, observer: Observer) -> None:
        self._registry = registry
        self._limits = limits
        self._observer = observer

    @_answering
    def Predict(
        self, request: predict_pb2.PredictRequest, context: grpc.ServicerContext, seen: Request
    ) -> predict_pb2.PredictResponse:
        model, version = self._registry.find(request.model_spec)
        seen.model, seen.texts = model.name, count_texts(request)
        with model.use(version) as servable:
            seen.version = servable.version
            response = servable.predict(
                request, self._limits, functools.partial(_given_up, context)
            )
        seen.signature = response.model_spec.signature_name
        response.model_spec.name = model.name
        return response

    @_answering
    def GetModelMetadata(
        self,
        request: get_model_metadata_pb2.GetModelMetadataRequest,
        context: grpc.ServicerContext,
        seen: Request,
    ) -> get_model_metadata_pb2.GetModelMetadataResponse:
        if not request.metadata_field:
            raise invalid(
                "GetModelMetadataRequest must specify at least one metadata_field: signature_def."
            )
        for field in request.metadata_field:
            if field != "signature_def":
                raise invalid(
                    f"Metadata field {field} is not supported; signature_def is the only one."
                )
        response = metadata(self._registry, request.model_spec)
        seen.model = response.model_spec.name
        return response

    Classify = _not_offered("Classify")
    Regress = _not_offered("Regress")
    MultiInference = _not_offered("MultiInference")


class ModelService(model_service_pb2_grpc.ModelServiceServicer):
    """`GetModelStatus` and `HandleReloadConfigRequest`."""

    def __init__(self, registry: Registry, observer: Observer) -> None:
        self._registry = registry
        self._observer = observer

    @_answering
    def GetModelStatus(
        self,
        request: get_model_status_pb2.GetModelStatusRequest,
        context: grpc.ServicerContext,
        seen: Request,
    ) -> get_model_status_pb2.GetModelStatusResponse:
        response = status(self._registry, request.model_spec)
        seen.model = request.model_spec.name
        return response

    @_answering
    def HandleReloadConfigRequest(
        self,
        request: model_management_pb2.ReloadConfigRequest,
        context: grpc.ServicerContext,
        seen: Request,
    ) -> model_management_pb2.ReloadConfigResponse:
        try:
            configs = model_config.configs_of(request.config)
        except ServeError as error:
            raise invalid(str(error)) from None
        try:
            self._registry.reload(configs)
        except ServeError as error:
            raise RequestRefused(grpc.StatusCode.FAILED_PRECONDITION, str(error)) from None
        return model_management_pb2.ReloadConfigResponse()
