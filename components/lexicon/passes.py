"""The passes of EM as Beam steps.

Large data are in files of a folder that every worker can reach; Beam moves only their paths.

An engine that works in memory keeps everything that its steps exchange until the pipeline ends. If
that were the links and the counts and table of each pass, memory would grow with the corpus and
with the number of passes. With paths it is one shard and one table per worker.
"""

import functools
import io
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, TypeVar

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue
from tfx.dsl.io import fileio

from components.example_texts import parse_texts
from components.untyped_in_beam import untyped_in_beam
from pipeline.features.vocabulary_files import SIDES, counted_as, read_counts
from pipeline.lexicons import alignment_files
from pipeline.lexicons import word_alignment as alignment
from pipeline.lexicons.links import make_links
from pipeline.recipes.sections import LexiconConfig
from pipeline.recipes.settings import TextSettings
from pipeline.text import units

# Of sentences: their links take some 100 MB.
SHARD_PAIRS = 20_000

_T = TypeVar("_T")


def token_counts(settings: TextSettings, vocabulary_uri: str) -> list[dict[str, int]]:
    """Returns how often the train split has each token, for source and target.

    Tokens are words, or the units that words are cut into.
    """
    return [read_counts(vocabulary_uri, counted_as(settings, side)) for side in SIDES]


def _write(write: Callable[..., None], path: str, *contents: Any) -> None:
    memory = io.BytesIO()
    write(memory, *contents)
    with fileio.open(path, "wb") as file:
        file.write(memory.getvalue())


def _read(read: Callable[[BinaryIO], _T], path: str) -> _T:
    with fileio.open(path, "rb") as file:
        return read(io.BytesIO(file.read()))


def _read_model(path: str) -> tuple[alignment.Table | None, alignment.Prior | None]:
    """Returns the table and the prior in a file; for "", the start of learning, None twice."""
    return _read(alignment_files.read_model, path) if path else (None, None)


class MakeLinks(beam.DoFn):
    """Batches of serialized examples to shards: the paths of their links, forward and backward.

    Args:
        folder: the folder of the files.
        settings, subwords_uri: what `units.tokenizer_of` takes.
        vocabulary_uri: the counts of the tokens of both sides.
    """

    def __init__(
        self, folder: str, settings: TextSettings, vocabulary_uri: str, subwords_uri: str | None
    ) -> None:
        super().__init__()
        self._folder = folder
        self._settings = settings
        self._uri = vocabulary_uri
        self._subwords_uri = subwords_uri

    def setup(self) -> None:
        """Reads the tokens."""
        self._tokenizers = [
            units.tokenizer_of(self._settings, self._subwords_uri, side) for side in SIDES
        ]
        # A token's id is its position among the counted ones, from 1.
        self._ids = [
            {token.encode(): number for number, token in enumerate(counts, 1)}
            for counts in token_counts(self._settings, self._uri)
        ]

    @untyped_in_beam
    def process(self, serialized: Sequence[bytes]) -> Iterator[list[str]]:
        """Links one batch."""
        parsed = parse_texts(serialized, SIDES)
        words = [
            [[ids[token] for token in row] for row in tokenizer.tokenize(parsed[side]).to_list()]
            for side, tokenizer, ids in zip(SIDES, self._tokenizers, self._ids)
        ]
        name = uuid.uuid4().hex
        paths = [
            os.path.join(self._folder, f"{direction}-{name}.links")
            for direction in ("forward", "backward")
        ]
        for path, sides in zip(paths, (words, words[::-1])):
            _write(alignment_files.write_links, path, make_links(*sides))
        yield paths


class _Expect(beam.DoFn):
    """The E step: paths of shards to the path of one file of counts for each bundle of them.

    Args:
        folder: the folder of the files.
        direction: 0 forward, 1 backward.
    """

    def __init__(self, folder: str, direction: int) -> None:
        super().__init__()
        self._folder = folder
        self._direction = direction

    def start_bundle(self) -> None:
        """Initializes the step, without counts and without a model."""
        self._counts = alignment.add_counts([])
        self._models = functools.lru_cache(_read_model)

    @untyped_in_beam
    def process(self, shard: Sequence[str], model: str, other_model: str | None = None) -> None:
        """Adds the expected counts of a shard.

        With a model of the other direction, these are of the links that both models agree on.
        """
        table, prior = self._models(model)
        links = _read(alignment_files.read_links, shard[self._direction])
        weights = None
        if other_model is not None:
            other_links = _read(alignment_files.read_links, shard[1 - self._direction])
            weights = alignment.agreement_weights(links, other_links, *self._models(other_model))
        expected = alignment.expected_counts(links, table, prior, weights)
        self._counts = alignment.add_counts([self._counts, expected])

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Writes the sum, and frees its memory for the process' other work."""
        counts = self._counts
        del self._counts, self._models
        path = os.path.join(self._folder, f"{uuid.uuid4().hex}.counts")
        _write(alignment_files.write_counts, path, counts)
        yield WindowedValue(path, GlobalWindow().max_timestamp(), [GlobalWindow()])


def _add_up(paths: Iterable[str]) -> alignment.Counts:
    """Returns the sum of files of `Counts`."""
    counts = alignment.add_counts([])
    for path in paths:
        counts = alignment.add_counts([counts, _read(alignment_files.read_counts, path)])
    return counts


def _maximize(path: str, counts_paths: Iterable[str], previous: str, diagonal: bool) -> str:
    """The M step: writes the next model and returns its path.

    The diagonal model begins with the default prior and the table of Model 1.
    """
    counts = _add_up(counts_paths)
    prior = _read_model(previous)[1]
    if diagonal:
        prior = alignment.update_prior(prior, counts) if prior else alignment.Prior()
    _write(alignment_files.write_model, path, alignment.normalize(counts), prior)
    return path


def learn(
    shards: beam.PCollection, config: LexiconConfig, start: beam.PCollection, folder: str
) -> beam.PCollection:
    """Returns the counts of the learned lexicon, a PCollection of one `Counts`.

    Args:
        shards: what `MakeLinks` gives.
        config: the recipe's lexicon section.
        start: a PCollection of any one element.
        folder: where files go that the passes exchange; the caller removes it.
    """

    def expect(name: str, direction: int, *models: beam.PCollection) -> Any:
        paths = shards | f"Expect {name}" >> beam.ParDo(
            _Expect(folder, direction), *map(beam.pvalue.AsSingleton, models)
        )
        return beam.pvalue.AsList(paths)

    models = []
    for direction, name in enumerate(
        ("forward", "backward") if config.symmetrization == "agreement" else ("forward",)
    ):
        model = start | f"Start {name}" >> beam.Map(lambda _: "")
        for step in range(config.model1_iterations + config.diagonal_iterations):
            counts = expect(f"{name} {step}", direction, model)
            # The last pass of Model 1 gives the diagonal model its prior.
            diagonal = step + 1 >= config.model1_iterations and config.diagonal_iterations > 0
            path = os.path.join(folder, f"{name}-{step}.model")
            model = start | f"Maximize {name} {step}" >> beam.Map(
                lambda _, *arguments: _maximize(*arguments),
                path,
                counts,
                beam.pvalue.AsSingleton(model),
                diagonal,
            )
        models.append(model)
    counts = expect("agreed" if len(models) > 1 else "last", 0, *models)
    return start | "Add last" >> beam.Map(lambda _, paths: _add_up(paths), counts)
