"""The work of Subwords:
words counted in Beam, a model of sentencepiece for each side, and a look at how long the texts
become.
"""

import io
import json
import os
import tempfile

import apache_beam as beam
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils

from components.vocabulary.executor import CountTokens
from pipeline.features.vocabulary_files import SIDES, join_counts
from pipeline.text import tokenization, units

EXAMPLES_KEY = "examples"
SUBWORDS_KEY = "subwords"
CONFIG_KEY = "subwords_config"


def train(counts, kind, size):
    """Returns a sentencepiece model that was trained on counted words, as bytes.

    Args:
        counts: dict from token to count; only the bare words among them are cut later, so only
            these are learned from.
        kind: `"characters"` or `"subwords"`.
        size: the most pieces, the 256 bytes and the unknown piece included.

    Raises:
        ValueError: there is no word to learn from, or the size leaves no room for pieces.
    """
    import sentencepiece

    bare = {}
    for token, count in counts.items():
        _, word, _ = units.split_marks(token)
        # A line is a word, a tab and its count.
        if (
            word
            and word != tokenization.JOINER
            and not any(c in word for c in "\t\n\r")
            and not tokenization.is_protected(word)
        ):
            bare[word] = bare.get(word, 0) + count
    if not bare:
        raise ValueError("The training text has no word to learn units from.")
    model = io.BytesIO()
    options = {
        "model_writer": model,
        "model_type": units.model_type(kind),
        "vocab_size": size,
        # What a word says is kept to the letter; white space parts words before.
        "normalization_rule_name": "identity",
        "add_dummy_prefix": False,
        "remove_extra_whitespaces": False,
        "byte_fallback": True,
        "hard_vocab_limit": False,
        "bos_id": -1,
        "eos_id": -1,
        "num_threads": 1,
        "minloglevel": 2,
        "character_coverage": 0.9995,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "words.tsv")
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(f"{word}\t{count}\n" for word, count in sorted(bare.items())))
        try:
            sentencepiece.SentencePieceTrainer.train(input=path, input_format="tsv", **options)
        except (RuntimeError, OSError) as error:
            # Its own sentence stands behind the place in its source.
            reason = str(error).strip().splitlines()[-1].rpartition("] ")[2] or str(error)
            raise ValueError(
                f"Units cannot be learned: {reason} (vocabulary.pieces is {size})."
            ) from None
    return model.getvalue()


class _Lengths(beam.DoFn):
    """Batches of serialized examples to (units of the longer side, what it says)."""

    def __init__(self, settings, folder):
        super().__init__()
        self._settings = settings
        self._folder = folder

    def setup(self):
        self._cut = {side: units.tokenizer_of(self._settings, self._folder, side) for side in SIDES}

    def process(self, serialized):
        import tensorflow as tf

        features = {side: tf.io.FixedLenFeature([], tf.string) for side in SIDES}
        parsed = tf.io.parse_example(tf.constant(serialized), features)
        for side in SIDES:
            lengths = self._cut[side].tokenize(parsed[side]).row_lengths().numpy()
            longest = int(lengths.argmax())
            yield (
                int(lengths[longest]),
                f"{side} {parsed[side][longest].numpy().decode('utf-8')[:100]!r}",
            )


class Executor(base_beam_executor.BaseBeamExecutor):
    """Learns from the train split and writes a model for each side."""

    def Do(self, input_dict, output_dict, exec_properties):  # noqa: N802 (TFX's name)
        config = json.loads(exec_properties[CONFIG_KEY])
        tokenizer = tokenization.Tokenizer(**config["tokenizer"])
        uri = artifact_utils.get_single_uri(output_dict[SUBWORDS_KEY])
        fileio.makedirs(uri)

        def files(split):
            return os.path.join(artifact_utils.get_split_uri(input_dict[EXAMPLES_KEY], split), "*")

        def write(counted):
            counts = {side: {} for side in SIDES}
            for (side, token), count in counted:
                counts[side][token] = count
            both = join_counts(list(counts.values()))
            for side in SIDES:
                model = train(
                    both if config["joint"] else counts[side], config["units"], config["pieces"]
                )
                with fileio.open(os.path.join(uri, units.MODEL_FILES[side]), "wb") as file:
                    file.write(model)

        with self._make_beam_pipeline() as pipeline:
            _ = (
                pipeline
                | "Read" >> beam.io.ReadFromTFRecord(files("train"))
                | "Batch" >> beam.BatchElements(min_batch_size=256, max_batch_size=4096)
                | "Tokenize" >> beam.ParDo(CountTokens(dict.fromkeys(SIDES, tokenizer)))
                | "Count" >> beam.combiners.Count.PerElement()
                | "List" >> beam.combiners.ToList()
                | "Write" >> beam.Map(write)
            )

        limit = config["longest"]

        def check(longest):
            if longest and longest[0] > limit:
                raise ValueError(
                    f"A text of the test split has {longest[0]} units, but the last of "
                    f"decoding.length_buckets is {limit}: raise it, or "
                    f"lower data.max_tokens, which counts words. It is the {longest[1]}."
                )

        # What cannot be served must be known before a training, not when the model is measured.
        with self._make_beam_pipeline() as pipeline:
            _ = (
                pipeline
                | "Read" >> beam.io.ReadFromTFRecord(files("test"))
                | "Batch" >> beam.BatchElements(min_batch_size=256, max_batch_size=4096)
                | "Cut" >> beam.ParDo(_Lengths(config, uri))
                | "Longest"
                >> beam.CombineGlobally(lambda found: max(found, default=None)).with_defaults()
                | "Check" >> beam.Map(check)
            )
