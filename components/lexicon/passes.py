"""The passes of EM as Beam steps.

What is large lies in files of a folder that every worker can reach; Beam moves their paths.

An engine that works in memory keeps all that its steps exchange until the pipeline ends. Were that
the links and each pass' counts and table, memory would grow with the corpus and with the number of
passes; so it is one shard and one table a worker.
"""

import functools
import io
import os
import uuid

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue
from tfx.dsl.io import fileio

from pipeline.features.vocabulary_files import SIDES, counted_as, read_counts
from pipeline.lexicons import word_alignment as alignment
from pipeline.text import units

SHARD_PAIRS = 20_000  # of sentences: their links take some 100 MB


def token_counts(settings, vocabulary_uri):
    """Returns, for source and target, a dict from each token of the train split to its count:
    words, or what they are cut into.
    """
    return [read_counts(vocabulary_uri, counted_as(settings, side)) for side in SIDES]


def _write(write, path, *contents):
    memory = io.BytesIO()
    write(memory, *contents)
    with fileio.open(path, "wb") as file:
        file.write(memory.getvalue())


def _read(read, path):
    with fileio.open(path, "rb") as file:
        return read(io.BytesIO(file.read()))


def _read_model(path):
    """Reads (table, prior); of "", what learning starts from."""
    return _read(alignment.read_model, path) if path else (None, None)


class MakeLinks(beam.DoFn):
    """Batches of serialized examples to the paths of their links' files, forward and backward:
    a shard.

    Args:
        folder: where the files go.
        settings, subwords_uri: what `units.tokenizer_of` takes.
        vocabulary_uri: where the tokens of either side are counted.
    """

    def __init__(self, folder, settings, vocabulary_uri, subwords_uri):
        super().__init__()
        self._folder = folder
        self._settings = settings
        self._uri = vocabulary_uri
        self._subwords_uri = subwords_uri

    def setup(self):
        """Reads what tokens there are."""
        self._tokenizers = [
            units.tokenizer_of(self._settings, self._subwords_uri, side) for side in SIDES
        ]
        # A token's id is its place among the counted ones, from 1.
        self._ids = [
            {token.encode(): place for place, token in enumerate(counts, 1)}
            for counts in token_counts(self._settings, self._uri)
        ]

    def process(self, serialized):
        """Links one batch."""
        import tensorflow as tf

        features = {side: tf.io.FixedLenFeature([], tf.string) for side in SIDES}
        parsed = tf.io.parse_example(tf.constant(serialized), features)
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
            _write(alignment.write_links, path, alignment.make_links(*sides))
        yield paths


class _Expect(beam.DoFn):
    """The E step: paths of shards to the path of one file of counts for each bundle of them.

    Args:
        folder: where the files go.
        direction: 0 forward, 1 backward.
    """

    def __init__(self, folder, direction):
        super().__init__()
        self._folder = folder
        self._direction = direction

    def start_bundle(self):
        """Nothing is counted yet, and no model read."""
        self._counts = alignment.add_counts([])
        self._model = functools.lru_cache(_read_model)

    def process(self, shard, model, other_model=None):
        """Adds what a shard has by a model;
        with another one of the other direction, what both believe in.
        """
        table, prior = self._model(model)
        links = _read(alignment.read_links, shard[self._direction])
        weights = None
        if other_model is not None:
            other_links = _read(alignment.read_links, shard[1 - self._direction])
            weights = alignment.agreement_weights(links, other_links, *self._model(other_model))
        found = alignment.expected_counts(links, table, prior, weights)
        self._counts = alignment.add_counts([self._counts, found])

    def finish_bundle(self):
        """Writes the sum; a process that goes on with other work holds nothing of it."""
        counts, self._counts, self._model = self._counts, None, None
        path = os.path.join(self._folder, f"{uuid.uuid4().hex}.counts")
        _write(alignment.write_counts, path, counts)
        yield WindowedValue(path, GlobalWindow().max_timestamp(), [GlobalWindow()])


def _add_up(paths):
    """Returns the sum of files of `Counts`."""
    counts = alignment.add_counts([])
    for path in paths:
        counts = alignment.add_counts([counts, _read(alignment.read_counts, path)])
    return counts


def _maximize(path, counts, previous, diagonal):
    """The M step: writes the next model and returns its path.

    The diagonal model begins with its prior as it is and Model 1's table.
    """
    counts = _add_up(counts)
    prior = _read_model(previous)[1]
    if diagonal:
        prior = alignment.update_prior(prior, counts) if prior else alignment.Prior()
    _write(alignment.write_model, path, alignment.normalize(counts), prior)
    return path


def learn(shards, config, start, folder):
    """Returns the counts of the learned lexicon, a PCollection of one `Counts`.

    Args:
        shards: what `MakeLinks` gives.
        config: the recipe's lexicon section.
        start: a PCollection of one element, of whatever.
        folder: where files go that the passes exchange; the caller removes it.
    """

    def expect(name, direction, *models):
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
            # Model 1's last pass hands the diagonal model its prior.
            diagonal = step + 1 >= config.model1_iterations and config.diagonal_iterations > 0
            path = os.path.join(folder, f"{name}-{step}.model")
            model = start | f"Maximize {name} {step}" >> beam.Map(
                lambda _, *given: _maximize(*given),
                path,
                counts,
                beam.pvalue.AsSingleton(model),
                diagonal,
            )
        models.append(model)
    counts = expect("agreed" if len(models) > 1 else "last", 0, *models)
    return start | "Add last" >> beam.Map(lambda _, paths: _add_up(paths), counts)
