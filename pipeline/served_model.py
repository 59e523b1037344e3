"""An exported model in this process: the same signatures that a server answers, without a server."""

import json
import pathlib

import numpy as np


class ModelError(ValueError):
    """A model that cannot be used; its message is one sentence for the user."""


def version_directory(directory):
    """Returns the folder of the SavedModel: the directory itself, or its highest numbered version.

    Raises:
        ModelError: neither is there.
    """
    path = pathlib.Path(directory)
    if (path / "saved_model.pb").is_file():
        return path
    if not path.is_dir():
        raise ModelError(f"The model folder {path} does not exist.")
    versions = [child for child in path.iterdir() if child.name.isdigit() and (child / "saved_model.pb").is_file()]
    if not versions:
        raise ModelError(f"The model folder {path} holds no version: give the folder that holds numbered SavedModels.")
    return max(versions, key=lambda child: int(child.name))


class ServedModel:
    """Loads a SavedModel and calls its signatures with lists of texts.

    Args:
        directory: a SavedModel, or a folder of numbered versions, of which the newest is taken.

    Raises:
        ModelError: no SavedModel, or one without the signatures.
    """

    def __init__(self, directory):
        import tensorflow as tf
        import tensorflow_text  # noqa: F401 (registers the operations that the graph uses)

        self.directory = version_directory(directory)
        self._loaded = tf.saved_model.load(str(self.directory))
        self._constant = tf.constant
        if "serving_default" not in self._loaded.signatures:
            raise ModelError(f"The model {self.directory} has no signature 'serving_default': it is not one of Verbatim's.")
        facts = self.directory / "assets.extra" / "verbatim.json"
        self.facts = json.loads(facts.read_text(encoding="utf-8")) if facts.is_file() else {}

    def predict(self, texts, signature="serving_default", progress=None):
        """Answers texts in the largest batches that the model compiles for.

        Args:
            texts: list of strings.
            signature: `"serving_default"`, `"serving_default_no_xla"` or `"explain"`.
            progress: called with the number of texts done after each batch.

        Returns:
            A list of dicts, one for each text: `text`, `score`, `tokens`, `copied_from`, `copy_probability`,
            `source_tokens` (and `attention` of `"explain"`), without padding.
        """
        function = self._loaded.signatures[signature]
        batch = max(self.facts.get("batch_buckets", [32]))
        # Texts of similar length together, so that short ones do not wait for long ones.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index].split()))
        answers = [None] * len(texts)
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            outputs = function(source=self._constant([texts[index] for index in chosen]))
            outputs = {name: value.numpy() for name, value in outputs.items()}
            for row, index in enumerate(chosen):
                answers[index] = _unpad({name: value[row] for name, value in outputs.items()})
            if progress:
                progress(min(start + batch, len(order)))
        return answers

    def score(self, sources, targets):
        """Returns two arrays `[pairs]`: log-probability of each target, and its number of tokens."""
        function = self._loaded.signatures["score"]
        log_probability, token_count = [], []
        for start in range(0, len(sources), 32):
            part = slice(start, start + 32)
            outputs = function(source=self._constant(sources[part]), target=self._constant(targets[part]))
            log_probability.append(outputs["log_probability"].numpy())
            token_count.append(outputs["token_count"].numpy())
        return np.concatenate(log_probability), np.concatenate(token_count)


def _unpad(row):
    tokens = [token.decode("utf-8") for token in row["tokens"] if token]
    source_tokens = [token.decode("utf-8") for token in row["source_tokens"] if token]
    answer = {
        "text": row["text"].decode("utf-8"),
        "score": float(row["score"]),
        "tokens": tokens,
        "copied_from": row["copied_from"][: len(tokens)].tolist(),
        "copy_probability": [round(float(p), 4) for p in row["copy_probability"][: len(tokens)]],
        "source_tokens": source_tokens,
    }
    if "attention" in row:
        answer["attention"] = np.round(row["attention"][: len(tokens), : len(source_tokens)], 4).tolist()
    return answer
