"""An exported language model in this process:
the same signatures that a server answers, without a server.
"""

import itertools

import numpy as np

from pipeline.export.served_model import ModelError, ServedModel
from pipeline.readers import text_streams
from pipeline.text import tokenization

_CONTINUED = {"text", "tokens", "copied_from", "copy_probability", "log_probability", "text_tokens"}
_SCORED = {"log_probability", "tokens", "token_count"}
_CARRIED = ("context", "states", "window")
_STREAMED = {"log_probability", "log_probability_with_copies", "unknown", "token_count", *_CARRIED}
_LONGEST_CHUNK = 512  # words that are scored at once; it changes memory and speed, no value


class ServedLanguageModel(ServedModel):
    """Loads the SavedModel of a language model and calls its signatures with lists of texts.

    Args:
        directory: a SavedModel, or a folder of numbered versions, of which the newest is taken.

    Raises:
        pipeline.export.served_model.ModelError: no SavedModel, one that cannot be loaded, or one
            without the signatures.
    """

    def _check_signatures(self):
        self._signature("score", {"text"})
        self._signature("continue", {"text"})

    @staticmethod
    def _outputs_of(signature):
        return {"score": _SCORED, "score_stream": _STREAMED}.get(signature, _CONTINUED)

    def score(self, texts, progress=None):
        """Log-probability of every word of texts.

        Args:
            texts: list of strings; a line feed ends a sentence.
            progress: called with the number of texts done after each batch.

        Returns:
            A list of (words, log-probabilities), a list of strings and a float32 array, one pair a
            text.

        Raises:
            pipeline.export.served_model.ModelError: a text is empty or too long.
        """
        function = self._signature("score", {"text"})
        scored = []
        for outputs in self._batches(function, texts, progress):
            for row, count in enumerate(outputs["token_count"]):
                words = [token.decode("utf-8") for token in outputs["tokens"][row, :count]]
                scored.append((words, outputs["log_probability"][row, :count]))
        return scored

    def score_stream(self, words, progress=None):
        """Log-probability of every word of a text of any length:
        LSTM states and the pointer's window are carried through it.

        Args:
            words: iterable of strings; `text_streams.LINE_END` ends a sentence.
            progress: called with the number of words done after each chunk.

        Returns:
            Dict of arrays `[words]`: float32 `log_probability`, where a word that has no id counts
            as the unknown word; float32 `log_probability_with_copies`, where it counts with the
            probability that the pointer gives the word itself, if it stands in the window; bool
            `unknown`, which words have no id.

        Raises:
            pipeline.export.served_model.ModelError: there is no word, or the model cannot be used.
        """
        function = self._signature("score_stream", {"text", *_CARRIED})
        shapes = {
            name: spec.shape[1:] for name, spec in function.structured_input_signature[1].items()
        }
        # A text begins as if a sentence had just ended.
        carry = {"context": [tokenization.END]}
        carry.update(
            {name: np.zeros([1, *shapes[name]], np.float32) for name in ("states", "window")}
        )
        parts = {name: [] for name in ("log_probability", "log_probability_with_copies", "unknown")}
        words, done = iter(words), 0
        while chunk := list(
            itertools.islice(words, min(_LONGEST_CHUNK, self.facts["length_buckets"][-1]))
        ):
            outputs = self._call(function, text=[text_streams.join_words(chunk)], **carry)
            if outputs["token_count"][0] != len(chunk):
                raise ModelError(
                    f"The model {self.directory} cuts {len(chunk)} words into "
                    f"{outputs['token_count'][0]} tokens: the text must be "
                    "cut as its recipe says."
                )
            carry = {name: outputs[name] for name in _CARRIED}
            for name, values in parts.items():
                values.append(outputs[name][0])
            done += len(chunk)
            if progress:
                progress(done)
        if not done:
            raise ModelError("There is no text to score: give words.")
        return {name: np.concatenate(values) for name, values in parts.items()}

    def continue_text(self, texts, signature="continue"):
        """How the model goes on after texts.

        Args:
            texts: list of strings.
            signature: `"continue"` or `"continue_no_xla"`.

        Returns:
            A list of dicts, one a text: `text` (the continuation), `tokens`, `copied_from`,
            `copy_probability`, `log_probability`, `text_tokens`.

        Raises:
            pipeline.export.served_model.ModelError: a text is empty or too long.
        """
        function = self._signature(signature, {"text"})
        answers = []
        for outputs in self._batches(function, texts):
            for row in range(len(outputs["text"])):
                answers.append(
                    {
                        "text": outputs["text"][row].decode("utf-8"),
                        "tokens": [token.decode("utf-8") for token in outputs["tokens"][row]],
                        "copied_from": outputs["copied_from"][row].tolist(),
                        "copy_probability": outputs["copy_probability"][row].tolist(),
                        "log_probability": outputs["log_probability"][row].tolist(),
                        "text_tokens": [
                            token.decode("utf-8") for token in outputs["text_tokens"][row] if token
                        ],
                    }
                )
        return answers

    def _batches(self, function, texts, progress=None):
        batch = max(self.facts.get("batch_buckets", [32]))
        for start in range(0, len(texts), batch):
            yield self._call(function, text=texts[start : start + batch])
            if progress:
                progress(min(start + batch, len(texts)))
