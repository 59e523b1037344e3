"""An exported language model in this process: the same signatures that a server answers, without a server."""

from pipeline.served_model import ServedModel

_CONTINUED = {"text", "tokens", "copied_from", "copy_probability", "log_probability", "text_tokens"}
_SCORED = {"log_probability", "tokens", "token_count"}


class ServedLanguageModel(ServedModel):
    """Loads the SavedModel of a language model and calls its signatures with lists of texts.

    Args:
        directory: a SavedModel, or a folder of numbered versions, of which the newest is taken.

    Raises:
        pipeline.served_model.ModelError: no SavedModel, one that cannot be loaded, or one without the signatures.
    """

    def _check_signatures(self):
        self._signature("score", {"text"})
        self._signature("continue", {"text"})

    @staticmethod
    def _outputs_of(signature):
        return _SCORED if signature == "score" else _CONTINUED

    def score(self, texts, progress=None):
        """Log-probability of every word of texts.

        Args:
            texts: list of strings; a line feed ends a sentence.
            progress: called with the number of texts done after each batch.

        Returns:
            A list of (words, log-probabilities), a list of strings and a float32 array, one pair a text.

        Raises:
            pipeline.served_model.ModelError: a text is empty or too long.
        """
        function = self._signature("score", {"text"})
        scored = []
        for outputs in self._batches(function, texts, progress):
            for row, count in enumerate(outputs["token_count"]):
                words = [token.decode("utf-8") for token in outputs["tokens"][row, :count]]
                scored.append((words, outputs["log_probability"][row, :count]))
        return scored

    def continue_text(self, texts, signature="continue"):
        """How the model goes on after texts.

        Args:
            texts: list of strings.
            signature: `"continue"` or `"continue_no_xla"`.

        Returns:
            A list of dicts, one a text: `text` (the continuation), `tokens`, `copied_from`, `copy_probability`,
            `log_probability`, `text_tokens`.

        Raises:
            pipeline.served_model.ModelError: a text is empty or too long.
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
                        "text_tokens": [token.decode("utf-8") for token in outputs["text_tokens"][row] if token],
                    }
                )
        return answers

    def _batches(self, function, texts, progress=None):
        batch = max(self.facts.get("batch_buckets", [32]))
        for start in range(0, len(texts), batch):
            yield self._call(function, text=texts[start : start + batch])
            if progress:
                progress(min(start + batch, len(texts)))
