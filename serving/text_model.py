"""What a model can be asked, wherever it is: on a server, or in this process."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import Any, TypeVar

from serving import asking
from serving.answers import Answer, Explanation, Metadata, Score, VersionStatus, WordScore
from serving.caller_texts import Features, Texts
from serving.errors import RequestError
from serving.glossary import GlossaryLike
from serving.messages import Messages, Question

T = TypeVar("T")


class TextModel(abc.ABC):
    """A model that answers texts: `serving.client.Client` and `serving.model.Model`."""

    _messages: Messages

    @abc.abstractmethod
    def close(self) -> None:
        """Ends the connection, or frees the model."""

    def predict(
        self,
        texts: Texts,
        signature: str = "serving_default",
        features: Features | None = None,
        *,
        glossary: GlossaryLike | None = None,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> list[Answer]:
        """Returns the best output of each text.

        Args:
            texts: a text or any number of them.
            signature: `serving_default` or `serving_default_no_xla`.
            features: dict from each column of tags that the model takes (`data.source_features`) to
                as many texts; or None.
            glossary: dict from phrase to translation, or a `Glossary`, which is checked only once:
                each phrase's translation stands in the output as often as the phrase in the text.
                None for none.
            timeout: seconds instead of those given at first; None is those.
            return_exceptions: if true, a refused text raises no exception; its `RequestError` takes
                its place in the list.

        Returns:
            A list of `Answer`, one per text.

        Raises:
            RequestError: a text is refused, or there is no answer; one sentence says why. Its
                `answers` has the answers to the other texts, and its `index` the place of the first
                text that is refused, counted from 0.
        """
        questions = self._messages.predict(texts, signature, features, glossary)
        return self._ask(questions, timeout, return_exceptions)

    def explain(
        self,
        texts: Texts,
        features: Features | None = None,
        *,
        glossary: GlossaryLike | None = None,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> list[Explanation]:
        """Returns the best output of each text, and where attention lay at each of its tokens.

        Args:
            texts: a text or any number of them.
            features, glossary, timeout, return_exceptions: as in `predict`.

        Returns:
            A list of `Explanation`, one per text.

        Raises:
            RequestError: as in `predict`.
        """
        questions = self._messages.explain(texts, features, glossary)
        return self._ask(questions, timeout, return_exceptions)

    def n_best(
        self,
        texts: Texts,
        signature: str = "n_best",
        features: Features | None = None,
        *,
        glossary: GlossaryLike | None = None,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> list[list[Answer]]:
        """Returns the best outputs of each text, the best first.

        Args:
            texts: a text or any number of them.
            signature: `n_best` or `n_best_no_xla`.
            features, glossary, timeout, return_exceptions: as in `predict`.

        Returns:
            A list with one list of `Answer` per text.

        Raises:
            RequestError: as in `predict`.
        """
        questions = self._messages.n_best(texts, signature, features, glossary)
        return self._ask(questions, timeout, return_exceptions)

    def score(
        self,
        sources: Texts,
        targets: Texts,
        features: Features | None = None,
        *,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> list[Score]:
        """Returns the model's score of each target for its source.

        Args:
            sources: a text or any number of them.
            targets: as many.
            features, timeout, return_exceptions: as in `predict`.

        Returns:
            A list of `Score`.

        Raises:
            RequestError: as in `predict`.
        """
        questions = self._messages.score(sources, targets, features)
        return self._ask(questions, timeout, return_exceptions)

    def continue_text(
        self,
        texts: Texts,
        signature: str = "continue",
        *,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> list[Answer]:
        """Returns how a language model continues each text.

        Args:
            texts: a text or any number of them; a line feed ends a sentence.
            signature: `continue` or `continue_no_xla`.
            timeout, return_exceptions: as in `predict`.

        Returns:
            A list of `Answer`, one per text. Its text is only the continuation, and its score the
            sum of the words' log-probabilities. `copied_from` counts the words of text and
            continuation, line feeds included.

        Raises:
            RequestError: as in `predict`.
        """
        questions = self._messages.continue_text(texts, signature)
        return self._ask(questions, timeout, return_exceptions)

    def score_text(
        self,
        texts: Texts,
        *,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> list[WordScore]:
        """Returns a language model's score of each word of each text.

        Args:
            texts: a text or any number of them; a line feed ends a sentence.
            timeout, return_exceptions: as in `predict`.

        Returns:
            A list of `WordScore`.

        Raises:
            RequestError: as in `predict`.
        """
        questions = self._messages.score_text(texts)
        return self._ask(questions, timeout, return_exceptions)

    def metadata(self, *, timeout: float | None = None) -> Metadata:
        """Returns the `Metadata` of the version that answers.

        Raises:
            RequestError: there is no answer; one sentence says why.
        """
        return self._answer(self._messages.metadata(), timeout)

    def status(self, *, timeout: float | None = None) -> list[VersionStatus]:
        """Returns a list of `VersionStatus`, one for each version that the server knows.

        Raises:
            RequestError: there is no answer; one sentence says why.
        """
        return self._answer(self._messages.status(), timeout)

    def _ask(
        self, questions: Iterator[Question[list[T]]], timeout: float | None, return_exceptions: bool
    ) -> list[T]:
        collected = asking.Collected()
        try:
            for question in questions:
                self._collect(collected, question, timeout)
        except RequestError as error:
            raise collected.broken_off(error) from None
        return collected.result(return_exceptions)

    def _collect(
        self, collected: asking.Collected, first: Question[list[Any]], timeout: float | None
    ) -> None:
        """Collects the answers to the texts of one question."""
        asked = collected.ask(first)
        reply: list[Any] | RequestError | None = None
        while question := collected.step(asked, reply):
            try:
                reply = self._answer(question, timeout)
            except RequestError as error:
                reply = error

    @abc.abstractmethod
    def _answer(self, question: Question[T], timeout: float | None) -> T:
        """Returns the answer to one request."""
