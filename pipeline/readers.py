"""Reading parallel text so that every record is accounted for.

A record is one pair that a file claims to hold: a line of a TSV or JSON Lines file, a row of a CSV file, a line number of
two line-aligned files, an entry of a gettext catalogue (a plural entry claims two). Each record comes out of
`read_unit` either as a `Pair` or as a `Reject` with its file, line and reason; nothing is skipped silently.

The splits are either divided by a hash of the source, or given by files (`data.train_files` and its like). A given eval
or test file is held as it is: no record of it is dropped as a duplicate, and a training pair that stands in it is
turned away from training instead.

This module is plain Python (polib for gettext), so the command line can check a user's data with
`plan_inputs` before TFX is imported. The Beam work is in `components/parallel_text_example_gen`.
"""

import csv
import dataclasses
import fnmatch
import hashlib
import itertools
import json
import os
import re
import struct
import typing
import unicodedata

from pipeline import tokenization

SPLITS = ("train", "eval", "test")
REJECT_COLUMNS = ("file", "line", "reason", "text")

_BOM = b"\xef\xbb\xbf"
_MO_MAGICS = (b"\xde\x12\x04\x95", b"\x95\x04\x12\xde")
_EXTENSIONS = {
    ".tsv": "tsv",
    ".txt": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".json": "jsonl",
    ".po": "gettext",
    ".mo": "gettext",
}
_READABLE = ".tsv, .txt with tabs, .csv, .jsonl, .json, .po, .mo, or two files .{0} and .{1}"
# Tab, line feed and carriage return may stand inside a gettext or JSON text; no other control character may.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# A rejected record's text is for a person to recognise it; file and line lead to the whole of it.
_REJECT_TEXT_LIMIT = 1000
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_ESCAPED = re.compile(r"[\\\t\n\r]")
_BLOCK = 1 << 20
_HELD_BACK = "also in a given "


class DataError(ValueError):
    """Data that cannot be read; its message is one sentence that names the file and what to do."""


class Pair(typing.NamedTuple):
    """A source and its target, stripped of white space at both ends, in lower case where `data.lowercase` asks for it.

    `file` is relative to the plan's base directory (for aligned files, the source file); `line` counts from
    1. An entry of a .mo file has no line: there, `line` is the entry's number. `features` holds, for each of
    `data.source_features`, the tags of the source's tokens, parted by one space, and then the value of each of
    `data.slice_features`.
    """

    source: str
    target: str
    file: str
    line: int
    features: tuple[str, ...] = ()


class Reject(typing.NamedTuple):
    """A record that was turned away: where it stands, why, and its text (shortened, unescaped)."""

    file: str
    line: int
    reason: str
    text: str


@dataclasses.dataclass(frozen=True)
class InputUnit:
    """What is read in one go: a file, or two line-aligned files (source, target).

    Attributes:
        format: one of `pipeline.configs.FORMATS`.
        names: the files as the user knows them, relative to the plan's base directory.
        paths: the same files as they are opened.
        split: the split that the recipe gives these files to; empty where all files are divided.
    """

    format: str
    names: tuple[str, ...]
    paths: tuple[str, ...]
    split: str = ""


@dataclasses.dataclass(frozen=True)
class InputPlan:
    """What a data path stands for.

    Attributes:
        base_directory: the folder that all names are relative to.
        units: the `InputUnit`s, in the order of their names, or of the recipe where it names them.
        ignored_files: names of files in the folder whose type is unknown. Hidden files, and a .mo file beside
            the .po file that it was made from, are not listed.
    """

    base_directory: str
    units: tuple[InputUnit, ...]
    ignored_files: tuple[str, ...] = ()


def resolve_data_path(data_path):
    """Makes a data path absolute, so that it means the same in every process.

    Args:
        data_path: a file, a folder, or two files separated by a comma; remote addresses (`scheme://...`) stay.

    Returns:
        The path as a string.
    """
    data_path = os.fspath(data_path)
    if "," in data_path and not os.path.exists(data_path):
        return ",".join(_absolute(part.strip()) for part in data_path.split(","))
    return _absolute(data_path)


def files_for(path):
    """Returns the file system of a path or an address, with `is_directory`, `exists`, `list` and `open` (for reading bytes)."""
    return _files_for(path)


def raw_lines(path):
    """Yields (line number from 1, bytes without line end) of a file; a leading byte order mark is dropped."""
    return _raw_lines(path, _files_for(path))


def split_base(paths):
    """Splits absolute paths, or remote addresses, into what they have in common and the rest.

    Args:
        paths: one path or more.

    Returns:
        (base, names): `os.path.join(base, name)` gives each path back.
    """
    # Not os.path.commonpath: it would fold the two slashes of an address into one.
    base = os.path.commonprefix([os.path.dirname(path).rstrip("/") + "/" for path in paths]).rpartition("/")[0]
    if not base or base.endswith(":/"):  # nothing in common but the root, or the scheme
        base += "/"
    return base, tuple(path[len(base) :].lstrip("/") for path in paths)


def aligned_partners(path, data_config):
    """Returns (source path, target path) if the path ends in a language of the recipe, else (path,).

    `train.en` and `train.fr` both give `("train.en", "train.fr")` for English to French. No file is looked up.
    """
    stem, extension = os.path.splitext(path)
    extensions = f".{data_config.source_language}", f".{data_config.target_language}"
    if extension not in extensions or extensions[0] == extensions[1]:
        return (path,)
    return stem + extensions[0], stem + extensions[1]


def plan_inputs(data_path, data_config):
    """Finds the files that a data path stands for and checks them, before any work is done.

    The check is quick but real: headers are read, lines of aligned files counted, catalogues parsed.

    Args:
        data_path: a file, a folder (its files, not its sub-folders), or two line-aligned files `a.en,a.fr`. Addresses
            with a scheme (`gs://...`) are read through TFX's file system plug-ins, which need TFX.
        data_config: a `pipeline.configs.DataConfig`. Where it names files, the path is their folder and no others are read.

    Returns:
        An `InputPlan` with one unit or more.

    Raises:
        DataError: nothing readable is there, a partner file or a column is missing, aligned files differ in
            length, or a catalogue's syntax is broken.
    """
    data_path = resolve_data_path(data_path)
    files = _files_for(data_path)
    try:
        if data_config.train_files:
            plan = _plan_given_files(data_path, data_config, files)
        elif files.is_directory(data_path):
            plan = _plan_directory(data_path, data_config, files)
        elif files.exists(data_path):
            plan = _plan_file(data_path, data_config, files)
        elif "," in data_path:
            plan = _plan_two_files(data_path, data_config, files)
        else:
            raise DataError(f"There is no file or folder {data_path}: check the path given as data.")
        for unit in plan.units:
            _check_unit(unit, data_config, files)
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"{error.filename or data_path} cannot be read ({reason}): check its permissions.") from None
    return plan


def read_unit(unit, data_config):
    """Reads the records of one unit, in order.

    Args:
        unit: an `InputUnit` of a plan.
        data_config: the `DataConfig` that the plan was made with.

    Yields:
        A `Pair` or a `Reject` for each record. Duplicates are not known here: they are found over all units.

    Raises:
        DataError: the unit cannot be read at all (what `plan_inputs` would have said).
    """
    files = _files_for(unit.paths[0])
    return _READERS[unit.format](unit, data_config, files)


def read_plan(plan, data_config):
    """Yields the records of all units in order, `Pair` or `Reject`, duplicates included."""
    for unit in plan.units:
        yield from read_unit(unit, data_config)


def reject_duplicate(pair, first_file, first_line):
    """Returns the `Reject` of a pair that was already seen at `first_file`, line `first_line`."""
    text = _shorten(f"{pair.source}\t{pair.target}")
    return Reject(pair.file, pair.line, f"duplicate of {first_file}:{first_line}", text)


def reject_held_back(pair, split, file, line):
    """Returns the `Reject` of a training pair that also stands in a file that was given as `split`."""
    text = _shorten(f"{pair.source}\t{pair.target}")
    return Reject(pair.file, pair.line, f"{_HELD_BACK}{split} file: {file}:{line}", text)


def reason_kind(reason):
    """Returns the reason without its particulars, for counting: all duplicates are of one kind."""
    if reason.startswith("duplicate of "):
        return "duplicate"
    return reason.partition(": ")[0] if reason.startswith(_HELD_BACK) else reason


def format_reject(reject):
    """Returns a line for `rejects.tsv`, no line end; tab, line end and backslash are escaped in every column."""
    return "\t".join(_ESCAPED.sub(lambda match: _ESCAPES[match.group()], str(field)) for field in reject)


def normalize_source(source):
    """Returns the form under which near-identical sources are the same.

    Compatibility characters, case, runs of white space and trailing punctuation make no difference.
    """
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", source).casefold())
    text = " ".join(text.split())
    end = len(text)
    while end and (text[end - 1].isspace() or unicodedata.category(text[end - 1]).startswith("P")):
        end -= 1
    return text[:end]


def divided_shares(data_config):
    """Returns (eval share, test share) by which the training files are divided: 0 for a split that has files of its own."""
    return tuple(
        0.0 if getattr(data_config, f"{split}_files") else getattr(data_config, f"{split}_share")
        for split in SPLITS[1:]
    )


def split_of(source, salt, eval_share, test_share):
    """Chooses the split of a pair by its source alone, the same on every machine and in every run.

    Args:
        source: the source text; near-identical sources (`normalize_source`) share a split.
        salt: another salt is another division.
        eval_share: expected share of distinct sources in `eval`, 0 to 1.
        test_share: the same for `test`.

    Returns:
        `"train"`, `"eval"` or `"test"`.
    """
    digest = hashlib.sha256(f"{salt}\0{normalize_source(source)}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    if place < eval_share:
        return "eval"
    return "test" if place < eval_share + test_share else "train"


# Files: local ones need Python alone; addresses with a scheme go through TFX, imported only then.


class _LocalFiles:
    """The local file system."""

    is_directory = staticmethod(os.path.isdir)
    exists = staticmethod(os.path.exists)
    list = staticmethod(os.listdir)

    @staticmethod
    def open(path):
        return open(path, "rb")


class _RemoteFiles:
    """The file systems that TFX has plug-ins for."""

    def __init__(self):
        from tfx.dsl.io import fileio

        self._fileio = fileio
        self.exists = fileio.exists
        self.is_directory = fileio.isdir

    def list(self, path):
        return [name.rstrip("/") for name in self._fileio.listdir(path)]

    def open(self, path):
        return self._fileio.open(path, "rb")


def _is_remote(path):
    return "://" in path


def _absolute(path):
    return path if _is_remote(path) else os.path.abspath(path)


def _files_for(path):
    return _RemoteFiles() if _is_remote(path) else _LocalFiles()


# Planning.


def _unit(format_, base, names, split=""):
    # A file name may hold bytes that are not UTF-8; its label in the outputs must.
    labels = tuple(name.encode("utf-8", "backslashreplace").decode("utf-8") for name in names)
    return InputUnit(format_, labels, tuple(os.path.join(base, name) for name in names), split)


def _format_of(path, config, files):
    """Returns the format by the file's extension, or None where it is unknown."""
    if len(aligned_partners(path, config)) == 2:
        return "lines"
    extension = os.path.splitext(path)[1].lower()
    format_ = _EXTENSIONS.get(extension)
    if extension == ".txt" and config.format == "auto" and not _has_tabs(path, files):
        return None
    return format_


def _has_tabs(path, files):
    return any(b"\t" in line for _, line in itertools.islice(_raw_lines(path, files), 100))


def _plan_given_files(base, config, files):
    if not files.is_directory(base):
        raise DataError(
            f"The recipe names its files (data.train_files), and {base} is not a folder: give the folder that holds them, or "
            "set data.train_files, data.eval_files and data.test_files to []."
        )
    units, taken = [], {}
    for split in SPLITS:
        for entry in getattr(config, f"{split}_files"):
            for names in _names_of_entry(entry, f"data.{split}_files", base, files):
                if len(names) == 2:
                    (unit,) = _plan_two_files(",".join(os.path.join(base, name) for name in names), config, files).units
                else:
                    (unit,) = _plan_file(os.path.join(base, names[0]), config, files).units
                names = tuple(path[len(base) :].lstrip("/") for path in unit.paths)
                if names in taken:
                    raise DataError(
                        f"The file {names[0]} is named in data.{taken[names]}_files and in data.{split}_files: a file "
                        "belongs to one split, once."
                    )
                taken[names] = split
                units.append(_unit(unit.format, base, names, split))
    return InputPlan(base, tuple(units))


def _names_of_entry(entry, key, base, files):
    """Returns the files that an entry of a recipe stands for: a list of tuples of one name, or of two aligned ones."""
    parts = [entry] if files.exists(os.path.join(base, entry)) else [part.strip() for part in entry.split(",")]
    if len(parts) > 2:
        raise DataError(f"The entry '{entry}' of {key} names {len(parts)} files: give one, or two as 'source,target'.")
    found = []
    for part in parts:
        folder, name = os.path.split(part)
        if files.exists(os.path.join(base, part)):
            found.append([part])
        elif files.is_directory(os.path.join(base, folder)):
            present = sorted(files.list(os.path.join(base, folder)))
            found.append([os.path.join(folder, other) for other in present if fnmatch.fnmatchcase(other, name)])
        else:
            found.append([])
        if not found[-1]:
            raise DataError(
                f"The recipe names {part} in {key}, but {base} holds no such file: correct the key or the path."
            )
    if len(found[0]) != len(found[-1]):
        raise DataError(
            f"The entry '{entry}' of {key} matches {len(found[0])} source and {len(found[-1])} target files: each needs a "
            "partner."
        )
    return list(zip(*found))


def _plan_file(path, config, files):
    base, name = os.path.split(path)
    found = _format_of(path, config, files)
    format_ = found if config.format == "auto" else config.format
    if format_ is None:
        raise DataError(
            f"The type of {path} is unknown: give {_READABLE.format(config.source_language, config.target_language)}, "
            "or name its type with data.format."
        )
    if format_ != "lines":
        return InputPlan(base, (_unit(format_, base, (name,)),))
    if found != "lines":
        raise DataError(
            f"{path} is one file and data.format is 'lines': give two files separated by a comma, source then target."
        )
    return InputPlan(base, (_unit("lines", base, _partners(name, config, base, files)),))


def _partners(name, config, base, files):
    """Returns (source name, target name) of line-aligned files, given either."""
    names = aligned_partners(name, config)
    missing = names[1] if name == names[0] else names[0]
    if not files.exists(os.path.join(base, missing)):
        raise DataError(f"{os.path.join(base, name)} has no partner file {missing}: add it, or take {name} away.")
    return names


def _plan_two_files(data_path, config, files):
    paths = data_path.split(",")
    if len(paths) != 2:
        raise DataError(f"The data path {data_path} names {len(paths)} files: give two, source then target.")
    if config.format not in ("auto", "lines"):
        raise DataError(
            f"Two files {data_path} are line-aligned text, but data.format is '{config.format}': set it to 'lines'."
        )
    for path in paths:
        if not files.exists(path) or files.is_directory(path):
            raise DataError(f"There is no file {path}: check the two paths given as data.")
    base, names = split_base(paths)
    return InputPlan(base, (_unit("lines", base, names),))


def _plan_directory(base, config, files):
    names = sorted(
        name
        for name in files.list(base)
        if not name.startswith(".") and not files.is_directory(os.path.join(base, name))
    )
    present = set(names)
    units, ignored = {}, []
    for name in names:
        format_ = _format_of(os.path.join(base, name), config, files)
        if format_ is None or config.format not in ("auto", format_):
            ignored.append(name)
        elif format_ == "lines":
            partners = _partners(name, config, base, files)
            units[partners] = _unit("lines", base, partners)
        elif name.lower().endswith(".mo") and name[:-3] + ".po" in present:
            continue  # the .po says the same and more: fuzzy entries, comments, lines
        else:
            units[(name,)] = _unit(format_, base, (name,))
    if not names:
        raise DataError(f"The folder {base} has no files (sub-folders are not read): put the data files into it.")
    if not units:
        wanted = _READABLE.format(config.source_language, config.target_language)
        which = "" if config.format == "auto" else f" of the type '{config.format}' that data.format asks for"
        raise DataError(f"The folder {base} holds no readable file{which}: what can be read is {wanted}.")
    return InputPlan(base, tuple(units[key] for key in sorted(units)), tuple(ignored))


# Checking, at plan time.


def _check_unit(unit, config, files):
    if unit.format == "lines":
        counts = [_count_lines(path, files) for path in unit.paths]
        if counts[0] != counts[1]:
            raise DataError(
                f"{unit.paths[0]} has {counts[0]} lines but {unit.paths[1]} has {counts[1]}: "
                "line-aligned files must have the same number of lines."
            )
    first = next(_raw_lines(unit.paths[0], files), None)
    if first is None:
        raise DataError(f"{unit.paths[0]} is empty: fill it or take it away.")
    if first[1].startswith((b"\xff\xfe", b"\xfe\xff")) and unit.format != "gettext":
        raise DataError(f"{unit.paths[0]} is UTF-16 text: convert it to UTF-8.")
    if config.extra_columns and unit.format in ("lines", "gettext"):
        key = "data.source_features" if config.source_features else "data.slice_features"
        raise DataError(f"{unit.paths[0]} has no columns for {key}: give TSV, CSV or JSON Lines, or leave the key out.")
    if unit.format == "tsv":
        _columns((_decode(first[1]) or "").split("\t"), config, unit.paths[0])
    elif unit.format == "csv":
        _, cells, _ = next(_csv_rows(unit.paths[0], files))
        _columns(cells or [], config, unit.paths[0])
    elif unit.format == "jsonl" and first[1].lstrip().startswith(b"["):
        raise DataError(f"{unit.paths[0]} is one JSON array: write JSON Lines, one object a line.")
    elif unit.format == "gettext":
        _parse_catalogue(unit.paths[0], files)


def _count_lines(path, files):
    count, last = 0, b"\n"
    with files.open(path) as handle:
        while block := handle.read(_BLOCK):
            count += block.count(b"\n")
            last = block[-1:]
    return count + (last != b"\n")


# Reading.


def _raw_lines(path, files):
    """Yields (line number from 1, bytes without line end); a leading byte order mark is dropped."""
    with files.open(path) as handle:
        for number, raw in enumerate(handle, 1):
            if number == 1 and raw.startswith(_BOM):
                raw = raw[len(_BOM) :]
            yield number, raw.rstrip(b"\r\n")


def _decode(raw):
    """Returns the text, or None where the bytes are not UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _shorten(text):
    # A lone surrogate (undecodable byte, or a bad JSON escape) cannot be written as UTF-8.
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    if len(text) <= _REJECT_TEXT_LIMIT:
        return text
    return f"{text[:_REJECT_TEXT_LIMIT]}... ({len(text)} characters)"


def _reject(file, line, reason, text):
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    return Reject(file, line, reason, _shorten(text))


def _judge(source, target, file, line, config, features=()):
    """Returns the `Pair`, or the `Reject` that says what is wrong with it."""
    reason = None
    texts = (source, target, *features)
    if any(map(_SURROGATE.search, texts)):
        reason = "not valid UTF-8"
    elif any(map(_CONTROL.search, texts)):
        reason = "control character"
    else:
        tokenizer = tokenization.Tokenizer.of(config)
        source_tokenizer = tokenization.Tokenizer.of(config, "source")
        source, target = (tokenizer.normalize(text.strip()) for text in (source, target))
        features = tuple(" ".join(tags.split()) for tags in features)
        if not source:
            reason = "empty source"
        elif not target:
            reason = "empty target"
        elif max(len(source), len(target)) > config.max_characters:
            reason = f"longer than {config.max_characters} characters"
        elif max(source_tokenizer.count(source), tokenizer.count(target)) > config.max_tokens:
            reason = f"longer than {config.max_tokens} tokens"
        elif config.drop_identical and source == target:
            reason = "target equals source"
        else:
            tokens = tokenizer.count(source)
            for name, tags in zip(config.source_features, features):
                if len(tags.split()) != tokens:
                    reason = f"'{name}' has not one tag for each token of the source"
    if reason:
        return _reject(file, line, reason, "\t".join((source, target, *features)))
    return Pair(source, target, file, line, features)


class _Columns(typing.NamedTuple):
    """Where the columns stand that are read, and whether the first line names them."""

    source: int
    target: int
    features: tuple[int, ...]
    has_header: bool


def _columns(cells, config, path):
    """Returns the `_Columns` of a TSV or CSV file by the cells of its first line.

    Raises:
        DataError: a column is missing.
    """
    cells = [cell.strip() for cell in cells]
    wanted = (config.source_column, config.target_column, *config.extra_columns)
    has_header = not config.columns or tuple(cells) == config.columns
    if config.columns:
        cells = list(config.columns)
    missing = [column for column in wanted if column not in cells]
    if not missing:
        source, target, *features = map(cells.index, wanted)
        return _Columns(source, target, tuple(features), has_header)
    # Without a header the first two columns count. But one name out of two is a header with a column missing, and
    # whoever names columns of their own expects a header.
    default = type(config)()
    if missing != list(wanted) or wanted != (default.source_column, default.target_column):
        found = _shorten(", ".join(repr(cell) for cell in cells))
        raise DataError(
            f"The header of {path} has no column '{missing[0]}' (it has {found}): correct the header, or "
            "data.source_column, data.target_column, data.source_features and data.slice_features; data.columns names the columns of a file "
            "without a header."
        )
    return _Columns(0, 1, (), False)


def _judge_cells(cells, columns, file, line, config):
    """Returns the record of one row."""
    if len(cells) <= max(columns.source, columns.target, *columns.features):
        return _reject(file, line, "missing column", "\t".join(cells))
    features = tuple(cells[index] for index in columns.features)
    return _judge(cells[columns.source], cells[columns.target], file, line, config, features)


def _read_tsv(unit, config, files):
    (name,), (path,) = unit.names, unit.paths
    for line, raw in _raw_lines(path, files):
        text = _decode(raw)
        if line == 1:
            columns = _columns((text or "").split("\t"), config, path)
            if columns.has_header:
                continue
        if text is None:
            yield _reject(name, line, "not valid UTF-8", raw)
        elif not text.strip():
            yield _reject(name, line, "empty line", text)
        else:
            yield _judge_cells(text.split("\t"), columns, name, line, config)


def _csv_rows(path, files):
    """Yields (line, cells, text) of each row; cells is None where the row is not valid CSV.

    A quoted cell may hold line ends: `line` is the row's first, `text` all of its lines. Bytes that are not UTF-8 come as
    lone surrogates, so that only their own row is turned away.
    """
    read = []

    def lines(handle):
        for number, raw in enumerate(handle):
            if not number and raw.startswith(_BOM):
                raw = raw[len(_BOM) :]
            read.append(raw.decode("utf-8", "surrogateescape"))
            yield read[-1]

    with files.open(path) as handle:
        rows = csv.reader(lines(handle), strict=True)
        while True:
            line = rows.line_num + 1
            read.clear()
            try:
                cells = next(rows)
            except StopIteration:
                return
            except csv.Error:
                cells = None
            yield line, cells, "".join(read).rstrip("\r\n")


def _read_csv(unit, config, files):
    (name,), (path,) = unit.names, unit.paths
    columns = None
    for line, cells, text in _csv_rows(path, files):
        if columns is None:
            columns = _columns(cells or [], config, path)
            if columns.has_header:
                continue
        if cells is None:
            yield _reject(name, line, "not valid CSV", text)
        elif not any(cell.strip() for cell in cells):
            yield _reject(name, line, "empty line", text)
        else:
            yield _judge_cells(cells, columns, name, line, config)


def _read_jsonl(unit, config, files):
    (name,), (path,) = unit.names, unit.paths
    wanted = (config.source_column, config.target_column, *config.extra_columns)
    for line, raw in _raw_lines(path, files):
        text = _decode(raw)
        if text is None:
            yield _reject(name, line, "not valid UTF-8", raw)
            continue
        if not text.strip():
            yield _reject(name, line, "empty line", text)
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):  # RecursionError: brackets nested by the thousand
            yield _reject(name, line, "not valid JSON", text)
            continue
        if not isinstance(value, dict):
            yield _reject(name, line, "not a JSON object", text)
        elif any(column not in value for column in wanted):
            yield _reject(name, line, "missing column", text)
        elif not all(isinstance(value[column], str) for column in wanted):
            yield _reject(name, line, "value is not a text", text)
        else:
            source, target, *features = (value[column] for column in wanted)
            yield _judge(source, target, name, line, config, tuple(features))


def _read_lines(unit, config, files):
    name = unit.names[0]
    nothing = (0, None)
    sides = [_raw_lines(path, files) for path in unit.paths]
    for (line, source_raw), (target_line, target_raw) in itertools.zip_longest(*sides, fillvalue=nothing):
        line = line or target_line
        raw = b"\t".join(side for side in (source_raw, target_raw) if side is not None)
        if source_raw is None or target_raw is None:  # the files changed since they were planned
            yield _reject(name, line, "no partner line", raw)
            continue
        source, target = _decode(source_raw), _decode(target_raw)
        if source is None or target is None:
            yield _reject(name, line, "not valid UTF-8", raw)
        else:
            yield _judge(source, target, name, line, config)


# gettext.


class _CatalogueText(str):
    """A .po file's text that polib cuts into lines as it would a file: at line feeds alone.

    `str.splitlines` also cuts at U+2028, form feeds and others, which are ordinary characters in a message.
    """

    def splitlines(self, keepends=False):
        del keepends
        return self.split("\n")


_MSGID_OR_MSGSTR = re.compile(r"\s*(?:#~\s*)?(msgid|msgstr)\b")  # \b: not msgid_plural
_DEFAULT = re.compile(r'^Default:\s*"((?:[^"\\]|\\.)*)"[ \t]*((?:\n\s*"(?:[^"\\]|\\.)*"[ \t]*)*)', re.MULTILINE)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


def _parse_catalogue(path, files):
    """Parses a .po or .mo file, told apart by their first bytes.

    Returns:
        (polib's entries, function that undoes how their strings were decoded). A string that is not valid in
        the catalogue's charset comes out of the function with lone surrogates, so that only its entry is rejected.

    Raises:
        DataError: the syntax is broken, or an entry has no msgstr.
    """
    import polib

    with files.open(path) as handle:
        content = handle.read()
    charset = polib.detect_encoding(content, binary_mode=True)
    if content.startswith(_MO_MAGICS):
        try:
            # Latin-1 takes every byte: the real charset is applied string by string, below.
            entries = polib.mofile(content, encoding="latin-1")
        except (OSError, ValueError, IndexError, OverflowError, struct.error):  # all of these come out of polib
            raise DataError(f"{path} is not a readable .mo file: compile it again with msgfmt.") from None
        return entries, lambda text: text.encode("latin-1").decode(charset, "surrogateescape")
    try:
        text = content.decode(charset, "surrogateescape").replace("\r\n", "\n")
    except (UnicodeError, LookupError):  # a charset that cannot carry bad bytes along, or is none for text
        raise DataError(f"{path} is not valid in its charset {charset}: convert it to UTF-8 with msgconv.") from None
    _check_entries_complete(text, path)
    try:
        # polib forgets the last entry where the file ends in certain comments; a plain comment makes it remember.
        entries = polib.pofile(_CatalogueText(text + "\n# end"), encoding=charset)
    except OSError as error:
        line = re.search(r"\(line (\d+)\)", str(error))
        where = f"{path}, line {line.group(1)}" if line else path
        detail = str(error).partition("): ")[2]
        raise DataError(
            f"{where}: this is not valid .po syntax{f' ({detail})' if detail else ''}; msgfmt -c says more."
        ) from None
    return entries, lambda text: text


def _check_entries_complete(text, path):
    """Refuses a msgid without msgstr (a file cut short): polib would drop the entry without a word."""
    pending = None
    for number, line in enumerate(text.split("\n"), 1):
        keyword = _MSGID_OR_MSGSTR.match(line)
        if keyword and keyword.group(1) == "msgstr":
            pending = None
        elif keyword:
            if pending:
                break
            pending = number
    if pending:
        raise DataError(f"{path}, line {pending}: this msgid has no msgstr; complete the entry or take it away.")


def _default_text(comment):
    """Returns the English text that Plone's tools keep in an extracted comment, or None.

    There the msgid is an identifier, and the comment says `Default: "text"`, perhaps over several quoted lines.
    """
    import polib

    match = _DEFAULT.search(comment)
    if not match:
        return None
    parts = [match.group(1), *_QUOTED.findall(match.group(2))]
    return polib.unescape("".join(parts))


def _read_gettext(unit, config, files):
    (name,), (path,) = unit.names, unit.paths
    entries, restore = _parse_catalogue(path, files)
    for number, entry in enumerate(entries, 1):
        line = getattr(entry, "linenum", None)
        line = number if line is None else max(1, line)
        source = restore(_default_text(getattr(entry, "comment", "")) or entry.msgid)
        if entry.msgid_plural:
            forms = entry.msgstr_plural
            pairs = [(source, forms.get(0)), (restore(entry.msgid_plural), forms.get(1))]
        else:
            pairs = [(source, entry.msgstr)]
        for source, target in pairs:
            missing = target is None
            target = "" if missing else restore(target)
            if entry.obsolete:
                reason = "obsolete"
            elif "fuzzy" in entry.flags:
                reason = "fuzzy"
            elif missing:
                reason = "no such plural form"
            elif not target.strip():
                reason = "untranslated"
            else:
                yield _judge(source, target, name, line, config)
                continue
            yield _reject(name, line, reason, f"{source}\t{target}")


# A format is a function of (unit, config, files) that yields each record as a `Pair` or a `Reject`.
_READERS = {"tsv": _read_tsv, "csv": _read_csv, "jsonl": _read_jsonl, "lines": _read_lines, "gettext": _read_gettext}
