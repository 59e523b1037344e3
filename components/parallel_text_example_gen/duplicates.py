"""Finding duplicates over all files.

The pairs are in files of a folder that every worker can reach; Beam moves only their paths.

An engine that works in memory keeps everything that its steps exchange until the pipeline ends. If
that were the pairs themselves, grouped by their texts, memory would grow with the corpus. With
paths a worker holds one part of them.
"""

import collections
import json
import os
import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, TypeAlias

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue
from tfx.dsl.io import fileio

from components.untyped_in_beam import untyped_in_beam
from pipeline.readers.records import Pair, reject_duplicate, reject_held_back
from pipeline.readers.splits import SPLITS

# How many parts there are, and into how many a part is divided again that is too large to be held.
# As many files are open at a time.
_PARTS = 64
# A part with more bytes in its files is divided. In memory a pair takes four times its bytes.
_HELD_BYTES = 128_000_000
_DIVISIONS = 3
_REJECTED = "rejected"

#: (source, target, file, line, features, split); the features are a list after JSON.
_SplitPair: TypeAlias = tuple[str, str, str, int, Sequence[str], str]
#: (file, line, split).
_Place: TypeAlias = tuple[str, int, str]
#: (path, bytes) of a file of pairs.
_File: TypeAlias = tuple[str, int]


class KeepFirst(beam.PTransform):
    """Keeps one pair of each pair of texts, and rejects the others.

    Applied to a PCollection of tuples (source, target, file, line, features, split) it returns
    `(pairs, rejected)`: such tuples, and tuples (file, line, reason, text, split). Its output does
    not depend on the engine.
    """

    def __init__(self, folder: str) -> None:
        """Takes the folder of the files; the caller removes it."""
        super().__init__()
        self._folder = folder

    @untyped_in_beam
    def expand(self, pairs: beam.PCollection) -> tuple[beam.PCollection, beam.PCollection]:
        """Builds the graph; see the class."""
        outputs = (
            pairs
            | "WriteParts" >> beam.ParDo(_WriteParts(self._folder))
            | "GroupParts" >> beam.GroupByKey()
            | "KeepFirst"
            >> beam.ParDo(_KeepFirst(self._folder)).with_outputs(_REJECTED, main="pairs")
        )
        return outputs.pairs, outputs[_REJECTED]


class _PartFiles:
    """Files of pairs, one for each part; equal texts are in one part."""

    def __init__(self, folder: str, depth: int = 0) -> None:
        """Takes the folder, and how often the pairs have been divided before."""
        # Names of their own, so that a repeated bundle writes nothing twice.
        self._folder, self._name, self._depth = folder, uuid.uuid4().hex, depth
        self._files: dict[int, BinaryIO] = {}
        self._sizes: collections.Counter[int] = collections.Counter()

    def add(self, texts: str, line: bytes) -> None:
        """Writes a pair to the file of its part."""
        part = zlib.crc32(texts.encode()) // _PARTS**self._depth % _PARTS
        if part not in self._files:
            self._files[part] = fileio.open(self._path(part), "wb")
        self._files[part].write(line)
        self._sizes[part] += len(line)

    def close(self) -> list[tuple[int, _File]]:
        """Returns the number and file of each part."""
        for file in self._files.values():
            file.close()
        return [(part, (self._path(part), self._sizes[part])) for part in sorted(self._files)]

    def _path(self, part: int) -> str:
        return os.path.join(self._folder, f"{part}-{self._name}.jsonl")


class _WriteParts(beam.DoFn):
    """Pairs to (part, file of its pairs)."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def start_bundle(self) -> None:
        self._parts = _PartFiles(self._folder)

    @untyped_in_beam
    def process(self, pair: _SplitPair) -> None:
        """Writes a pair to the file of its part."""
        line = json.dumps(pair, ensure_ascii=False).encode() + b"\n"
        self._parts.add(_texts(pair), line)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Closes the files and yields them."""
        for item in self._parts.close():
            yield WindowedValue(item, GlobalWindow().max_timestamp(), [GlobalWindow()])


def _texts(pair: _SplitPair) -> str:
    source, target, _, _, features, _ = pair
    # The readers reject NUL, so this is unique for a pair of texts.
    return "\0".join((source, target, *features))


class _KeepFirst(beam.DoFn):
    """Keeps the first place of each pair of texts, by file and line, and rejects the others.

    Files that the recipe names for eval and test keep all of theirs: a benchmark counts each of its
    records. The training files then keep none.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    @untyped_in_beam
    def process(
        self, item: tuple[int, Iterable[_File]]
    ) -> Iterator[_SplitPair | beam.pvalue.TaggedOutput]:
        """Goes through one part, in the order of its files and lines.

        If it is too large, it is divided, and each of its parts is in that order.
        """
        yield from self._keep_first(list(item[1]), depth=1)

    def _keep_first(
        self, files: Sequence[_File], depth: int
    ) -> Iterator[_SplitPair | beam.pvalue.TaggedOutput]:
        # The hash has bits for three divisions. What is then too large are pairs that are equal.
        if sum(size for _, size in files) > _HELD_BYTES and depth <= _DIVISIONS:
            parts = _PartFiles(self._folder, depth)
            for line, pair in _pairs_of(files):
                parts.add(_texts(pair), line)
            for _, file in parts.close():
                yield from self._keep_first([file], depth + 1)
                fileio.remove(file[0])
            return
        places: dict[str, list[_Place]] = {}
        for _, pair in _pairs_of(files):
            _, _, name, number, _, split = pair
            places.setdefault(_texts(pair), []).append((name, number, split))
        for own in places.values():
            own.sort()
        for texts in sorted(places, key=lambda texts: (places[texts], texts)):
            yield from _judge(texts, places[texts])


def _pairs_of(files: Iterable[_File]) -> Iterator[tuple[bytes, _SplitPair]]:
    for path, _ in files:
        with fileio.open(path, "rb") as file:
            for line in file:
                yield line, json.loads(line)


def _judge(texts: str, places: Sequence[_Place]) -> Iterator[_SplitPair | beam.pvalue.TaggedOutput]:
    source, target, *features = texts.split("\0")
    held_back = [place for place in places if place[2] in SPLITS[1:]]
    kept = held_back or places[:1]
    for file, line, split in kept:
        yield source, target, file, line, tuple(features), split
    # Both halves of a plural entry can be equal and on the same line: only one of them is kept.
    rest = [place for place in places if place[2] not in SPLITS[1:]] if held_back else places[1:]
    first_file, first_line, split = kept[0]
    for file, line, own_split in rest:
        pair = Pair(source, target, file, line)
        if held_back:
            reject = reject_held_back(pair, split, first_file, first_line)
        else:
            reject = reject_duplicate(pair, first_file, first_line)
        yield beam.pvalue.TaggedOutput(_REJECTED, (*reject, own_split))
