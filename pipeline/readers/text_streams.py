"""Reads plain text as one stream of words, for language models.

A text is read line by line; words are separated by white space, and the line feed is a word of its
own, the end of a sentence. A stream is cut into passages, one per example of the pipeline. A
passage of an eval or test stream begins with `context` words of the one
before: they are read, not scored, so that a passage is measured almost as if the whole stream had
been read.

This module is plain Python, so that the command line can check a user's data before TFX is
imported.
"""

import dataclasses
import fnmatch
import itertools
import os
import typing
from collections.abc import Iterable, Iterator, Sequence

from pipeline.readers import DataError
from pipeline.readers.files import files_for, raw_lines, resolve_data_path
from pipeline.readers.splits import SPLITS
from pipeline.recipes.recipe_keys import RecipeKeys
from pipeline.recipes.sections import DataConfig
from pipeline.text import tokenization

LINE_END = "\n"


class Passage(typing.NamedTuple):
    """A part of a stream.

    Attributes:
        text: its words, separated by blanks; a line feed ends a sentence.
        context: how many words at its beginning are the last of the passage before.
        order: its place in the stream, rising.
        file: the file's name, relative to the data folder.
        line: the line of its first word, from 1.
    """

    text: str
    context: int
    order: int
    file: str
    line: int


@dataclasses.dataclass(frozen=True)
class StreamPlan:
    """The files of each split.

    Attributes:
        base_directory: the folder that names are relative to.
        files: from split to (name, path) of each file.
        ignored_files, unreadable_files: none, as the recipe names the files.
    """

    base_directory: str
    files: dict[str, tuple[tuple[str, str], ...]]
    ignored_files: typing.ClassVar[tuple[str, ...]] = ()
    unreadable_files: typing.ClassVar[tuple[str, ...]] = ()

    @property
    def units(self) -> tuple[tuple[str, str], ...]:
        """All files, as many as `readers.input_plan.InputPlan` has units."""
        return tuple(itertools.chain.from_iterable(self.files.values()))


def evaluated_split(data_config: DataConfig) -> str:
    """Returns the split that a model is measured on: `test`, or `eval` without test files."""
    return "test" if data_config.test_files else "eval"


def passage_sizes(recipe: RecipeKeys) -> tuple[int, int]:
    """Returns (context, new): how many words an eval passage repeats, and how many it adds.

    Together they are the longest text served.
    """
    longest = recipe.decoding.length_buckets[-1]
    context = min(recipe.language_model.window, longest // 2)
    return context, longest - context


def plan_streams(data_path: str | os.PathLike[str], recipe: RecipeKeys) -> StreamPlan:
    """Finds the files of each split and checks them, before any work is done.

    Args:
        data_path: the folder that holds the files which `data.train_files` and its like name.
        recipe: one of the task `language_model`.

    Raises:
        pipeline.readers.DataError: a file is missing, empty, not UTF-8 in its beginning, or shorter
            than the window; one sentence.
    """
    base = resolve_data_path(data_path)
    files = files_for(base)
    if not files.is_directory(base):
        raise DataError(
            f"{base} is not a folder: give the folder that contains the files of data.train_files "
            "and data.eval_files."
        )
    files_of_split: dict[str, tuple[tuple[str, str], ...]] = {}
    taken: dict[str, str] = {}
    for split in SPLITS:
        names: list[str] = []
        for entry in getattr(recipe.data, f"{split}_files"):
            folder, pattern = os.path.split(entry)
            directory = os.path.join(base, folder)
            present = sorted(files.names_in(directory)) if files.is_directory(directory) else []
            matching = [
                os.path.join(folder, name) for name in present if fnmatch.fnmatchcase(name, pattern)
            ]
            if not matching:
                raise DataError(
                    f"The recipe names {entry} in data.{split}_files, but {base} contains no such "
                    "file: correct the key or the path."
                )
            names += matching
        for name in names:
            if name in taken:
                raise DataError(
                    f"The file {name} is named in data.{taken[name]}_files and in "
                    f"data.{split}_files: name each file once, for one split."
                )
            taken[name] = split
        if names:
            files_of_split[split] = tuple((name, os.path.join(base, name)) for name in names)
    plan = StreamPlan(base, files_of_split)
    for split in files_of_split:
        _check_length(plan, split, recipe)
    return plan


def _check_length(plan: StreamPlan, split: str, recipe: RecipeKeys) -> None:
    """Raises `DataError` if a split is too short; reads no more of it than necessary."""
    window = recipe.language_model.window
    rows = recipe.language_model.batch_size if split == "train" else 1
    needed = max(window + 1, rows)
    count = 0
    for name, path in plan.files[split]:
        words = 0
        for _ in read_words(name, path, recipe.data):
            words += 1
            if count + words >= needed:
                return
        if not words:
            raise DataError(f"{path} is empty: fill it or remove it.")
        count += words
    names = " and ".join(path for _, path in plan.files[split])
    why = f"the window is {window}" if needed == window + 1 else f"they are read in {rows} rows"
    raise DataError(
        f"{names} has {count} words, line ends included, and {why}: give more text, or lower "
        f"language_model.{'window' if needed == window + 1 else 'batch_size'}."
    )


def read_words(name: str, path: str, data_config: DataConfig) -> Iterator[tuple[str, int]]:
    """Yields (word, line number) of a file, `LINE_END` at the end of every line.

    Raises:
        pipeline.readers.DataError: a line is not UTF-8, the file and the line named.
    """
    tokenizer = tokenization.Tokenizer.of(data_config)
    for number, raw in raw_lines(path):
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise DataError(
                f"Line {number} of {path} is not UTF-8: convert the file to UTF-8."
            ) from None
        for word in tokenizer.tokens(tokenizer.normalize(text)):
            yield word, number
        yield LINE_END, number


def join_words(words: Sequence[str]) -> str:
    """Returns the text of a list of words, with blanks between words but not beside a line end."""
    return " ".join(words).replace(f" {LINE_END}", LINE_END).replace(f"{LINE_END} ", LINE_END)


def words_of(text: str) -> list[str]:
    """Returns the words of a text that `join_words` made."""
    lines = [line.split(" ") if line else [] for line in text.split(LINE_END)]
    return [word for line in lines[:-1] for word in (*line, LINE_END)] + lines[-1]


def passages_of(
    words: Iterable[tuple[str, int]], context: int, new: int, name: str = "", first: int = 0
) -> Iterator[Passage]:
    """Cuts a stream into passages.

    Args:
        words: iterable of (word, line number).
        context: words that each passage but the first repeats.
        new: the most words that it adds.
        name: the file's name.
        first: the order of the first passage.

    Yields:
        Passages; their new words, one after the other, are the stream.
    """
    words = iter(words)
    before: list[tuple[str, int]] = []
    for order in itertools.count(first):
        added = list(itertools.islice(words, new))
        if not added:
            return
        text = join_words([word for word, _ in (*before, *added)])
        yield Passage(text, len(before), order, name, (*before, *added)[0][1])
        before = [*before, *added][-context:] if context else []


def read_passages(plan: StreamPlan, split: str, recipe: RecipeKeys) -> Iterator[Passage]:
    """Yields the passages of a split's files.

    Each file is a stream of its own, with orders that follow the one before.
    """
    for index in range(len(plan.files[split])):
        yield from read_file_passages(plan.files[split][index], index, split, recipe)


def read_file_passages(
    file: tuple[str, str], index: int, split: str, recipe: RecipeKeys
) -> Iterator[Passage]:
    """Yields the passages of one file, the `index`-th of its split."""
    name, path = file
    context, new = passage_sizes(recipe)
    if split == "train":
        # Training reads the stream as a whole: nothing is repeated.
        context, new = 0, context + new
    label = name.encode("utf-8", "backslashreplace").decode("utf-8")
    # More than the passages of any file, so that orders rise from file to file.
    yield from passages_of(
        read_words(name, path, recipe.data), context, new, label, first=index << 40
    )
