"""An exported model in this process: the same signatures that a server answers, without a server."""

import concurrent.futures
import json
import pathlib

import numpy as np

from pipeline.common.errors import VerbatimError

_OUTPUTS = {"text", "score", "tokens", "copied_from", "copy_probability", "source_tokens"}

# Pairs of a batch that is scored.
_SCORED = 32

# What must be a number wherever it is given.
_SCORES = {"score", "log_probability", "log_probability_with_copies"}


class ModelError(VerbatimError, ValueError):
    """A model that cannot be used; its message is one sentence for the user."""


def version_directory(directory):
    """Returns the folder of the SavedModel: the directory itself, or its highest numbered version.

    Raises:
        ModelError: neither is there.
    """
    path = pathlib.Path(directory)
    if (path / "saved_model.pb").is_file():
        return path
    if not path.exists():
        raise ModelError(f"The model folder {path} does not exist.")
    if not path.is_dir():
        raise ModelError(
            f"The model folder {path} is a file: give the folder that holds numbered SavedModels."
        )
    versions = [
        child
        for child in path.iterdir()
        if child.name.isdigit() and (child / "saved_model.pb").is_file()
    ]
    if not versions:
        raise ModelError(
            f"The model folder {path} holds no version: give the folder that holds numbered "
            "SavedModels."
        )
    return max(versions, key=lambda child: int(child.name))


def read_facts(directory):
    """Returns what the export wrote about a model into `assets.extra/verbatim.json`; {} if that is
    not there.

    Raises:
        ModelError: the file cannot be understood.
    """
    path = pathlib.Path(directory) / "assets.extra" / "verbatim.json"
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelError(f"The facts of the model, {path}, cannot be read: {error}.") from None
    if not isinstance(facts, dict):
        raise ModelError(f"The facts of the model, {path}, must be one JSON object.")
    return facts


class ServedModel:
    """Loads a SavedModel and calls its signatures with lists of texts.

    Args:
        directory: a SavedModel, or a folder of numbered versions, of which the newest is taken.
        at_once: how many batches are computed at the same time, where there is no GPU: as many as
            `serving.processors.compute_each_batch_on` says, so that each has cores of its own.

    Raises:
        ModelError: no SavedModel, one that cannot be loaded, or one without the signatures.
    """

    def __init__(self, directory, at_once=1):
        import tensorflow as tf
        import tensorflow_text  # noqa: F401 (registers the operations that the graph uses)

        self.directory = version_directory(directory)
        self.facts = read_facts(self.directory)
        try:
            self._loaded = tf.saved_model.load(str(self.directory))
        except Exception as error:  # whatever TensorFlow finds wrong with the files
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise ModelError(
                f"The model {self.directory} cannot be loaded ({reason.rstrip('.')}): copy or "
                "export it anew."
            ) from error
        # A GPU computes one batch after the other; more of them would only take its memory.
        self._at_once = 1 if tf.config.list_physical_devices("GPU") else at_once
        self._constant = tf.constant
        self._invalid_argument = tf.errors.InvalidArgumentError
        self.source_features = self.facts.get("source_features", [])
        self._check_signatures()

    def _check_signatures(self):
        self._signature("serving_default", {"source", *self.source_features})

    def _signature(self, name, inputs):
        """Returns a signature, once it is sure that it takes these texts and gives what Verbatim's
        gives.
        """
        function = self._loaded.signatures.get(name)
        if function is None:
            raise ModelError(
                f"The model {self.directory} has no signature '{name}': it is not one of "
                "Verbatim's, or of an older version; "
                "export it anew."
            )
        outputs = self._outputs_of(name)
        taken, given = set(function.structured_input_signature[1]), set(function.structured_outputs)
        if taken != inputs or not outputs <= given:
            raise ModelError(
                f"The signature '{name}' of the model {self.directory} takes "
                f"{', '.join(sorted(taken)) or 'nothing'} and gives "
                f"{', '.join(sorted(given)) or 'nothing'}: it is not one of Verbatim's."
            )
        return function

    @staticmethod
    def _outputs_of(signature):
        return {"log_probability", "token_count"} if signature == "score" else _OUTPUTS

    def _call(self, function, **texts):
        try:
            outputs = function(**{name: self._constant(values) for name, values in texts.items()})
        except self._invalid_argument as error:
            from serving.servable import human_sentence

            raise ModelError(human_sentence(error.message)) from None
        arrays = {name: value.numpy() for name, value in outputs.items()}
        for name in _SCORES & set(arrays):
            if arrays[name].dtype.kind == "f" and np.isnan(arrays[name]).any():
                raise ModelError(
                    f"The model {self.directory} gives '{name}' that is not a number: it is "
                    "damaged, or its training diverged."
                )
        return arrays

    def _features_of(self, features, number):
        """Returns the tags for each column that the model takes, dict of lists.

        Raises:
            ModelError: tags are missing, superfluous, or not as many as there are texts.
        """
        features = features or {}
        if set(features) != set(self.source_features):
            raise ModelError(
                f"The model {self.directory} takes tags of "
                f"{', '.join(self.source_features) or 'no column'}; "
                f"got {', '.join(features) or 'none'}."
            )
        for name, values in features.items():
            if len(values) != number:
                raise ModelError(
                    f"There must be as many tags of {name} as texts; got {len(values)} and "
                    f"{number}."
                )
        return features

    def _answers_of(self, function, columns, parts):
        """Calls a signature with parts of the texts, some of them at the same time.

        Args:
            function: the signature.
            columns: dict from an input's name to its texts, all of them.
            parts: list of lists of numbers of texts.

        Yields:
            The outputs of each part, dicts of arrays, in their order.
        """

        def answer(part):
            return self._call(
                function,
                **{name: [values[row] for row in part] for name, values in columns.items()},
            )

        if (
            self._at_once == 1
        ):  # no thread is needed, and a single sentence would wait for its start
            yield from map(answer, parts)
            return
        with concurrent.futures.ThreadPoolExecutor(self._at_once) as pool:
            yield from pool.map(answer, parts)

    def predict(self, texts, signature="serving_default", progress=None, features=None):
        """Answers texts in the largest batches that the model compiles for.

        Args:
            texts: list of strings.
            signature: `"serving_default"`, `"serving_default_no_xla"` or `"explain"`.
            progress: called with the number of texts done after each batch.
            features: dict from each column of tags that the model takes to a list of strings, one
                for each text.

        Returns:
            A list of dicts, one for each text: `text`, `score`, `tokens`, `copied_from`,
            `copy_probability`, `source_tokens` (and `attention` of `"explain"`), without padding.

        Raises:
            ModelError: a text is empty or too long, its tags are missing, the model lacks the
                signature, or its scores are NaN.
        """
        function = self._signature(signature, {"source", *self.source_features})
        columns = {"source": texts, **self._features_of(features, len(texts))}
        batch = max(self.facts.get("batch_buckets", [32]))
        # Texts of similar length together, so that short ones do not wait for long ones.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index].split()))
        parts = [order[start : start + batch] for start in range(0, len(order), batch)]
        # What takes longest begins first: no core is left alone with it at the end.
        parts.reverse()
        answers, done = [None] * len(texts), 0
        for part, outputs in zip(parts, self._answers_of(function, columns, parts)):
            for row, index in enumerate(part):
                answers[index] = _unpad({name: value[row] for name, value in outputs.items()})
            done += len(part)
            if progress:
                progress(done)
        return answers

    def score(self, sources, targets, features=None):
        """Returns two arrays `[pairs]`: log-probability of each target, and its number of tokens;
        `features` as in `predict`.
        """
        function = self._signature("score", {"source", "target", *self.source_features})
        columns = {
            "source": sources,
            "target": targets,
            **self._features_of(features, len(sources)),
        }
        parts = [
            range(len(sources))[start : start + _SCORED]
            for start in range(0, len(sources), _SCORED)
        ]
        outputs = list(self._answers_of(function, columns, parts))
        return tuple(
            np.concatenate([one[name] for one in outputs])
            for name in ("log_probability", "token_count")
        )


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
        answer["attention"] = np.round(
            row["attention"][: len(tokens), : len(source_tokens)], 4
        ).tolist()
    return answer
