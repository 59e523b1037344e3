"""The work of Subwords: counts words, learns to cut them, and finds texts that become too long."""

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils

from components.artifacts import EXAMPLES_KEY, SUBWORDS_KEY, Artifacts, folder_of
from components.count_tokens import CountTokens
from components.example_texts import parse_texts
from components.untyped_in_beam import untyped_in_beam
from pipeline.features.vocabulary_files import SIDES, join_counts
from pipeline.recipes.settings import SubwordsSettings, TextSettings
from pipeline.text import presets, tokenization, units, white_space
from pipeline.text.placeholders import ProtectedSyntax, syntax_of

CONFIG_KEY = "subwords_config"


def train(
    counts: Mapping[str, int], kind: str, size: int, syntax: ProtectedSyntax | None = None
) -> bytes:
    """Returns a sentencepiece model that was trained on counted words.

    Args:
        counts: dict from token to count; only the bare words among them are cut later, so only
            these are learned from.
        kind: `"characters"` or `"subwords"`.
        size: the largest number of pieces, the 256 bytes and the unknown piece included.
        syntax: what is protected, hence never cut; by default what recipes protect by default.

    Raises:
        ValueError: there is no word to learn from, or the size leaves no room for pieces.
    """
    import sentencepiece

    bare: dict[str, int] = {}
    syntax = syntax or syntax_of()
    for token, count in counts.items():
        _, word, _ = units.split_marks(token)
        if (
            word
            and word != tokenization.JOINER
            and not any(c in word for c in "\t\n\r")
            and not syntax.is_protected(word)
            and not white_space.is_white_space(word)
        ):
            bare[word] = bare.get(word, 0) + count
    if not bare:
        raise ValueError("The training text has no word to learn units from: check the data.")
    model = io.BytesIO()
    options: dict[str, Any] = {
        "model_writer": model,
        "model_type": units.model_type(kind),
        "vocab_size": size,
        # Words keep their spelling; white space has already separated them.
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
    # One word per line, with a tab and its count. From a file, the model would name the file.
    lines = [f"{word}\t{count}" for word, count in sorted(bare.items())]
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), input_format="tsv", **options
        )
    except (RuntimeError, OSError) as error:
        # The message begins with a place in sentencepiece's source.
        reason = str(error).strip().splitlines()[-1].rpartition("] ")[2] or str(error)
        raise ValueError(
            f"Units cannot be learned: {reason} (vocabulary.pieces is {size})."
        ) from None
    return model.getvalue()


class _Lengths(beam.DoFn):
    """Batches of serialized examples to (number of units, text) of each side's longest text."""

    def __init__(self, settings: TextSettings, folder: str) -> None:
        super().__init__()
        self._settings = settings
        self._folder = folder

    def setup(self) -> None:
        self._cut = {side: units.tokenizer_of(self._settings, self._folder, side) for side in SIDES}

    @untyped_in_beam
    def process(self, serialized: Sequence[bytes]) -> Iterator[tuple[int, str]]:
        parsed = parse_texts(serialized, SIDES)
        for side in SIDES:
            lengths = self._cut[side].tokenize(parsed[side]).row_lengths().numpy()
            longest = int(lengths.argmax())
            yield (
                int(lengths[longest]),
                f"{side} {parsed[side][longest].numpy().decode('utf-8')[:100]!r}",
            )


class Executor(base_beam_executor.BaseBeamExecutor):
    """Learns from the train split and writes a model for each side."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]
    ) -> None:
        """Writes the models.

        Raises:
            ValueError: a text of the test split has more units than can be served.
        """
        settings: SubwordsSettings = json.loads(exec_properties[CONFIG_KEY])
        tokenizer = tokenization.Tokenizer(**settings["tokenizer"])
        uri = folder_of(output_dict, SUBWORDS_KEY)
        fileio.makedirs(uri)

        def files(split: str) -> str:
            return os.path.join(artifact_utils.get_split_uri(input_dict[EXAMPLES_KEY], split), "*")

        def write_model(side: str, model: bytes) -> None:
            with fileio.open(os.path.join(uri, units.MODEL_FILES[side]), "wb") as file:
                file.write(model)

        @untyped_in_beam
        def write(counted: Iterable[tuple[tuple[str, str], int]]) -> None:
            counts: dict[str, dict[str, int]] = {side: {} for side in SIDES}
            for (side, token), count in counted:
                counts[side][token] = count
            both = join_counts(list(counts.values()))
            for side in SIDES:
                chosen = both if settings["joint"] else counts[side]
                write_model(
                    side,
                    train(chosen, settings["units"], settings["pieces"], tokenizer.syntax),
                )

        if settings["units"] == "preset":
            model = presets.PresetTokens.read(settings["preset"]).cutting_model()
            for side in SIDES:
                write_model(side, model)
        else:
            self._count(files("train"), tokenizer, write)
        # Examples of other components may have no split for a test.
        names = artifact_utils.decode_split_names(
            artifact_utils.get_single_instance(input_dict[EXAMPLES_KEY]).split_names
        )
        if "test" in names:
            self._check_lengths(files("test"), settings, uri)

    def _count(
        self,
        files: str,
        tokenizer: tokenization.Tokenizer,
        write: Callable[[Iterable[tuple[tuple[str, str], int]]], None],
    ) -> None:
        with self._make_beam_pipeline() as pipeline:
            _ = (
                pipeline
                | "Read" >> beam.io.ReadFromTFRecord(files)
                | "Batch" >> beam.BatchElements(min_batch_size=256, max_batch_size=4096)
                | "Tokenize" >> beam.ParDo(CountTokens(dict.fromkeys(SIDES, tokenizer)))
                | "Count" >> beam.combiners.Count.PerElement()
                | "List" >> beam.combiners.ToList()
                | "Write" >> beam.Map(write)
            )

    def _check_lengths(self, files: str, settings: SubwordsSettings, uri: str) -> None:
        limit = settings["longest"]

        @untyped_in_beam
        def check(longest: tuple[int, str] | None) -> None:
            if longest and longest[0] > limit:
                raise ValueError(
                    f"A text of the test split has {longest[0]} units, but the last of "
                    f"decoding.length_buckets is {limit}: raise it, or "
                    f"lower data.max_tokens, which counts words. It is the {longest[1]}."
                )

        # Checked now rather than when a trained model is measured.
        with self._make_beam_pipeline() as pipeline:
            _ = (
                pipeline
                | "Read" >> beam.io.ReadFromTFRecord(files)
                | "Batch" >> beam.BatchElements(min_batch_size=256, max_batch_size=4096)
                | "Cut" >> beam.ParDo(_Lengths(settings, uri))
                | "Longest"
                >> beam.CombineGlobally(lambda lengths: max(lengths, default=None)).with_defaults()
                | "Check" >> beam.Map(check)
            )
