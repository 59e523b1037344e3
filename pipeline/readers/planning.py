"""Finding the files that a data path stands for, and checking them before any work is done."""

import dataclasses
import fnmatch
import itertools
import os

from pipeline.readers import DataError
from pipeline.readers.delimited import csv_rows, find_columns
from pipeline.readers.files import (
    count_lines,
    decode,
    files_for,
    is_utf16,
    raw_lines,
    resolve_data_path,
    split_base,
)
from pipeline.readers.gettext_catalogues import parse_catalogue
from pipeline.readers.splits import SPLITS

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


@dataclasses.dataclass(frozen=True)
class InputUnit:
    """What is read in one go: a file, or two line-aligned files (source, target).

    Attributes:
        format: one of `pipeline.recipes.choices.FORMATS`.
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
        ignored_files: names of files in the folder whose type is unknown. Hidden files, and a .mo
            file beside the .po file that it was made from, are not listed.
    """

    base_directory: str
    units: tuple[InputUnit, ...]
    ignored_files: tuple[str, ...] = ()


def aligned_partners(path, data_config):
    """Returns (source path, target path) if the path ends in a language of the recipe, else
    (path,).

    `train.en` and `train.fr` both give `("train.en", "train.fr")` for English to French. No file is
    looked up.
    """
    stem, extension = os.path.splitext(path)
    extensions = f".{data_config.source_language}", f".{data_config.target_language}"
    if extension not in extensions or extensions[0] == extensions[1]:
        return (path,)
    return stem + extensions[0], stem + extensions[1]


def plan_inputs(data_path, data_config):
    """Finds the files that a data path stands for and checks them, before any work is done.

    The check is quick but real: headers are read, lines of aligned files counted, catalogues
    parsed.

    Args:
        data_path: a file, a folder (its files, not its sub-folders), or two line-aligned files
            `a.en,a.fr`. Addresses with a scheme (`gs://...`) are read through TFX's file system
            plug-ins, which need TFX.
        data_config: a `pipeline.recipes.sections.DataConfig`. Where it names files, the path is
            their folder and no others are read.

    Returns:
        An `InputPlan` with one unit or more.

    Raises:
        DataError: nothing readable is there, a partner file or a column is missing, aligned files
            differ in length, or a catalogue's syntax is broken.
    """
    data_path = resolve_data_path(data_path)
    files = files_for(data_path)
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
            raise DataError(
                f"There is no file or folder {data_path}: check the path given as data."
            )
        for unit in plan.units:
            _check_unit(unit, data_config, files)
    except OSError as error:
        reason = error.strerror or error
        raise DataError(
            f"{error.filename or data_path} cannot be read ({reason}): check its permissions."
        ) from None
    return plan


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
    return any(b"\t" in line for _, line in itertools.islice(raw_lines(path, files), 100))


def _plan_given_files(base, config, files):
    if not files.is_directory(base):
        raise DataError(
            f"The recipe names its files (data.train_files), and {base} is not a folder: give the "
            "folder that holds them, or "
            "set data.train_files, data.eval_files and data.test_files to []."
        )
    units, taken = [], {}
    for split in SPLITS:
        for entry in getattr(config, f"{split}_files"):
            for names in _names_of_entry(entry, f"data.{split}_files", base, files):
                if len(names) == 2:
                    (unit,) = _plan_two_files(
                        ",".join(os.path.join(base, name) for name in names), config, files
                    ).units
                else:
                    (unit,) = _plan_file(os.path.join(base, names[0]), config, files).units
                names = tuple(path[len(base) :].lstrip("/") for path in unit.paths)
                if names in taken:
                    raise DataError(
                        f"The file {names[0]} is named in data.{taken[names]}_files and in "
                        f"data.{split}_files: a file "
                        "belongs to one split, once."
                    )
                taken[names] = split
                units.append(_unit(unit.format, base, names, split))
    return InputPlan(base, tuple(units))


def _names_of_entry(entry, key, base, files):
    """Returns the files that an entry of a recipe stands for:
    a list of tuples of one name, or of two aligned ones.
    """
    parts = (
        [entry]
        if files.exists(os.path.join(base, entry))
        else [part.strip() for part in entry.split(",")]
    )
    if len(parts) > 2:
        raise DataError(
            f"The entry '{entry}' of {key} names {len(parts)} files: give one, or two as "
            "'source,target'."
        )
    found = []
    for part in parts:
        folder, name = os.path.split(part)
        if files.exists(os.path.join(base, part)):
            found.append([part])
        elif files.is_directory(os.path.join(base, folder)):
            present = sorted(files.list(os.path.join(base, folder)))
            found.append(
                [
                    os.path.join(folder, other)
                    for other in present
                    if fnmatch.fnmatchcase(other, name)
                ]
            )
        else:
            found.append([])
        if not found[-1]:
            raise DataError(
                f"The recipe names {part} in {key}, but {base} holds no such file: correct the "
                "key or the path."
            )
    if len(found[0]) != len(found[-1]):
        raise DataError(
            f"The entry '{entry}' of {key} matches {len(found[0])} source and {len(found[-1])} "
            "target files: each needs a "
            "partner."
        )
    return list(zip(*found))


def _plan_file(path, config, files):
    base, name = os.path.split(path)
    found = _format_of(path, config, files)
    format_ = found if config.format == "auto" else config.format
    if format_ is None:
        raise DataError(
            f"The type of {path} is unknown: give "
            f"{_READABLE.format(config.source_language, config.target_language)}, "
            "or name its type with data.format."
        )
    if format_ != "lines":
        return InputPlan(base, (_unit(format_, base, (name,)),))
    if found != "lines":
        raise DataError(
            f"{path} is one file and data.format is 'lines': give two files separated by a comma, "
            "source then target."
        )
    return InputPlan(base, (_unit("lines", base, _partners(name, config, base, files)),))


def _partners(name, config, base, files):
    """Returns (source name, target name) of line-aligned files, given either."""
    names = aligned_partners(name, config)
    missing = names[1] if name == names[0] else names[0]
    if not files.exists(os.path.join(base, missing)):
        raise DataError(
            f"{os.path.join(base, name)} has no partner file {missing}: add it, or take {name} "
            "away."
        )
    return names


def _plan_two_files(data_path, config, files):
    paths = data_path.split(",")
    if len(paths) != 2:
        raise DataError(
            f"The data path {data_path} names {len(paths)} files: give two, source then target."
        )
    if config.format not in ("auto", "lines"):
        raise DataError(
            f"Two files {data_path} are line-aligned text, but data.format is '{config.format}': "
            "set it to 'lines'."
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
        raise DataError(
            f"The folder {base} has no files (sub-folders are not read): put the data files into "
            "it."
        )
    if not units:
        wanted = _READABLE.format(config.source_language, config.target_language)
        which = (
            ""
            if config.format == "auto"
            else f" of the type '{config.format}' that data.format asks for"
        )
        raise DataError(
            f"The folder {base} holds no readable file{which}: what can be read is {wanted}."
        )
    return InputPlan(base, tuple(units[key] for key in sorted(units)), tuple(ignored))


def _check_unit(unit, config, files):
    for path in unit.paths:
        if unit.format != "gettext" and is_utf16(path, files):
            raise DataError(f"{path} is UTF-16 text: convert it to UTF-8.")
    if unit.format == "lines":
        counts = [count_lines(path, files) for path in unit.paths]
        if counts[0] != counts[1]:
            raise DataError(
                f"{unit.paths[0]} has {counts[0]} lines but {unit.paths[1]} has {counts[1]}: "
                "line-aligned files must have the same number of lines."
            )
    first = next(raw_lines(unit.paths[0], files), None)
    if first is None:
        raise DataError(f"{unit.paths[0]} is empty: fill it or take it away.")
    if config.extra_columns and unit.format in ("lines", "gettext"):
        key = "data.source_features" if config.source_features else "data.slice_features"
        raise DataError(
            f"{unit.paths[0]} has no columns for {key}: give TSV, CSV or JSON Lines, or leave the "
            "key out."
        )
    if unit.format == "tsv":
        find_columns((decode(first[1]) or "").split("\t"), config, unit.paths[0])
    elif unit.format == "csv":
        _, cells, _ = next(csv_rows(unit.paths[0], files))
        find_columns(cells or [], config, unit.paths[0])
    elif unit.format == "jsonl" and first[1].lstrip().startswith(b"["):
        raise DataError(f"{unit.paths[0]} is one JSON array: write JSON Lines, one object a line.")
    elif unit.format == "gettext":
        parse_catalogue(unit.paths[0], files)
