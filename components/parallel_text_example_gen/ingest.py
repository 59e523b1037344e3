"""The steps of Beam that read parallel text, reject duplicates, and divide it into splits."""

import collections
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import apache_beam as beam
import tensorflow as tf
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from components.parallel_text_example_gen.duplicates import KeepFirst
from components.parallel_text_example_gen.recombining import DividedPair, Recombine
from components.untyped_in_beam import untyped_in_beam
from pipeline.readers import DataError
from pipeline.readers.formats import read_unit
from pipeline.readers.input_plan import InputUnit
from pipeline.readers.records import Pair, Reject, format_reject, reason_kind
from pipeline.readers.splits import SPLITS, divided_shares, split_of
from pipeline.recipes.sections import DataConfig

REJECTED = "rejected"
#: Rejects of the files that the recipe names for a split.
REJECTED_FROM = "rejected from"
#: Pairs that were made, not read.
RECOMBINED = "recombined"

# Between the steps records are plain tuples, which any runner encodes without knowing our classes.
# The split is that of the unit, or "".
#: (source, target, file, line, features, split).
_SplitPair: TypeAlias = tuple[str, str, str, int, tuple[str, ...], str]
#: (file, line, reason, text, split).
_SplitReject: TypeAlias = tuple[str, int, str, str, str]


class Ingest(beam.PTransform):
    """Reads units of data, one worker each, and rejects duplicates over all of them.

    Applied to a pipeline it returns `(splits, rejected, tally)`: a dict from split name to
    serialized tf.Examples, the lines of `rejects.tsv`, and JSON lines `[what, which, count]`.
    """

    def __init__(
        self, units: Sequence[Any], read: beam.DoFn, config: DataConfig, folder: str
    ) -> None:
        """Takes the units, their reader, the data section, and a folder for `KeepFirst`.

        The reader yields tuples (source, target, file, line, features, split), and tuples (file,
        line, reason, text, split) on the side `REJECTED`.
        """
        super().__init__()
        self._units = units
        self._read = read
        self._config = config
        self._folder = folder

    @untyped_in_beam
    def expand(
        self, pipeline: beam.Pipeline
    ) -> tuple[dict[str, beam.PCollection], beam.PCollection, beam.PCollection]:
        """Builds the graph; see the class."""
        config = self._config
        read = (
            pipeline
            | "Units" >> beam.Create(list(self._units))
            | "Spread" >> beam.Reshuffle()
            | "Read" >> beam.ParDo(self._read).with_outputs(REJECTED, main="pairs")
        )
        pairs, rejects = read.pairs, [read[REJECTED]]
        # Each branch is counted before the branches are joined: if Flatten is not fused, all of its
        # input is held.
        tallies = [
            read.pairs | "TallyReadPairs" >> beam.ParDo(_Tally(lambda _: [("read", "")])),
            read[REJECTED] | "TallyReadRejects" >> beam.ParDo(_Tally(lambda _: [("read", "")])),
        ]
        if config.drop_duplicates:
            pairs, duplicates = pairs | "Duplicates" >> KeepFirst(self._folder)
            rejects.append(duplicates)
        rejects = rejects | "AllRejects" >> beam.Flatten()
        tallies.append(
            rejects
            | "TallyRejected"
            >> beam.ParDo(
                _Tally(
                    lambda record: [
                        (REJECTED, reason_kind(record[2])),
                        (REJECTED_FROM, record[4]),
                    ]
                )
            )
        )

        divided = pairs | "Divide" >> beam.ParDo(_Divide(config)).with_outputs(*SPLITS)
        splits = {}
        for split in SPLITS:
            of_split = divided[split]
            tallies.append(
                of_split
                | f"TallyKept[{split}]"
                >> beam.ParDo(_Tally(lambda _, name=split: [("kept", name)]))
            )
            if split == "train" and config.recombinations:
                held_out = [divided[other] for other in SPLITS if other != split]
                new = of_split | "Recombine" >> Recombine(config, held_out)
                tallies.append(
                    new | "TallyNewPairs" >> beam.ParDo(_Tally(lambda _: [(RECOMBINED, "")]))
                )
                of_split = (of_split, new) | "WithNewPairs" >> beam.Flatten()
            splits[split] = of_split | f"Serialize[{split}]" >> beam.Map(
                _serialize, config.extra_columns
            )
        tally = (
            tallies
            | "AllTallies" >> beam.Flatten()
            | "AddUp" >> beam.CombinePerKey(sum)
            | "CountToJson" >> beam.Map(lambda item: json.dumps([*item[0], item[1]]))
        )
        lines = rejects | "FormatRejects" >> beam.Map(
            lambda record: format_reject(Reject(*record[:4]))
        )
        return splits, lines, tally


class _Tally(beam.DoFn):
    """Counts the elements of a bundle by the kinds (what, which) that a function returns.

    The bundles are added up once for all branches: each sum of its own would be a shuffle of its
    own, and engines give each memory.
    """

    def __init__(self, kinds_of: Callable[..., Sequence[tuple[str, str]]]) -> None:
        super().__init__()
        self._kinds_of = kinds_of

    def start_bundle(self) -> None:
        self._counts: collections.Counter[tuple[str, str]] = collections.Counter()

    @untyped_in_beam
    def process(self, element: tuple[object, ...]) -> None:
        """Counts one element."""
        self._counts.update(self._kinds_of(element))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Yields the counts."""
        for item in self._counts.items():
            yield WindowedValue(item, GlobalWindow().max_timestamp(), [GlobalWindow()])


class ReadUnit(beam.DoFn):
    """An `InputUnit` to pairs, and rejects on the side.

    `longest_test` is as in `read_unit`.
    """

    def __init__(self, config: DataConfig, longest_test: int | None = None) -> None:
        super().__init__()
        self._config = config
        self._longest_test = longest_test

    @untyped_in_beam
    def process(self, unit: InputUnit) -> Iterator[_SplitPair | beam.pvalue.TaggedOutput]:
        """Yields the records of one unit.

        Raises:
            DataError: a text of the given test files is too long to be measured.
        """
        too_long = f"longer than {self._longest_test} tokens"
        for record in read_unit(unit, self._config, self._longest_test):
            if isinstance(record, Pair):
                yield (*record[:5], unit.split)
            elif unit.split == "test" and record.reason == too_long:
                raise DataError(
                    f"{record.file}:{record.line} has more than {self._longest_test} tokens, the "
                    "last of decoding.length_buckets: add a longer one, so that the files given "
                    "as test split are measured whole."
                )
            else:
                yield beam.pvalue.TaggedOutput(REJECTED, (*record, unit.split))


class _Divide(beam.DoFn):
    """Sends each pair to the output that has the name of its split."""

    def __init__(self, config: DataConfig) -> None:
        super().__init__()
        self._config = config
        self._shares = divided_shares(config)

    @untyped_in_beam
    def process(self, pair: _SplitPair) -> Iterator[beam.pvalue.TaggedOutput]:
        """Yields the pair without the split of its unit."""
        source, target, file, line, features, split = pair
        if split not in SPLITS[1:]:
            split = split_of(source, self._config.split_salt, *self._shares)
        yield beam.pvalue.TaggedOutput(split, (source, target, file, line, features))


@untyped_in_beam
def _serialize(pair: DividedPair, feature_names: Sequence[str]) -> bytes:
    source, target, file, line, extra = pair

    def texts(text: str) -> tf.train.Feature:
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()]))

    features = {
        "source": texts(source),
        "target": texts(target),
        "file": texts(file),
        "line": tf.train.Feature(int64_list=tf.train.Int64List(value=[line])),
        **{name: texts(text) for name, text in zip(feature_names, extra)},
    }
    example = tf.train.Example(features=tf.train.Features(feature=features))
    serialized: bytes = example.SerializeToString(deterministic=True)
    return serialized
