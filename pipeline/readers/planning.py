"""Finds the files behind a data path, and checks them before any work is done."""

import contextlib
import dataclasses
import fnmatch
import glob
import itertools
import os
from collections.abc import Iterator, Sequence

from pipeline.common.object_stores import StorageError
from pipeline.readers import DataError, UnreadableFile
from pipeline.readers.files import (
    Files,
    files_for,
    is_utf16,
    raw_lines,
    resolve_data_path,
    split_base,
    without_gz,
)
from pipeline.readers.formats import FORMATS
from pipeline.readers.input_plan import InputPlan, InputUnit
from pipeline.readers.splits import SPLITS
from pipeline.recipes import corpora
from pipeline.recipes.sections import DataConfig

# A .txt file counts only if it has tabs.
_WITH_TABS = ".txt"
_FORMAT_OF_SUFFIX = {
    suffix: name for name, format_ in FORMATS.items() for suffix in format_.suffixes
}
_READABLE = (
    ", ".join(
        f"{suffix} with tabs" if suffix == _WITH_TABS else suffix for suffix in _FORMAT_OF_SUFFIX
    )
    + ", or two files .{0} and .{1}; each may be compressed, .gz"
)


def aligned_partners(path: str, data_config: DataConfig) -> tuple[str, ...]:
    """Returns (source path, target path) if a path ends in a language of the recipe, else (path,).

    `train.en` and `train.fr` both give `("train.en", "train.fr")` for English to French. No file is
    looked up.
    """
    name = without_gz(path)
    stem, extension = os.path.splitext(name)
    extensions = f".{data_config.source_language}", f".{data_config.target_language}"
    if extension not in extensions or extensions[0] == extensions[1]:
        return (path,)
    gz = path[len(name) :]
    return stem + extensions[0] + gz, stem + extensions[1] + gz


def plan_inputs(data_path: str | os.PathLike[str], data_config: DataConfig) -> InputPlan:
    """Finds the files behind a data path and checks them, before any work is done.

    The check is quick but real: headers are read, lines of aligned files counted, catalogues
    parsed.

    Args:
        data_path: a file, a folder (its files, not its sub-folders), or two line-aligned files
            `a.en,a.fr`. Addresses with a scheme (`gs://...`) are read through TFX's file system
            plug-ins, which need TFX.
        data_config: the recipe's. If it names files, the path is their folder and no others are
            read.

    Returns:
        A plan with one unit or more.

    Raises:
        DataError: there is no readable file, a partner file or a column is missing, or aligned
            files differ in length. An unreadable catalogue is no error if there are other files.
    """
    plan = find_inputs(data_path, data_config)
    files = files_for(resolve_data_path(data_path))
    with _readable(plan.base_directory):
        return _check_units(plan, data_config, files)


def find_inputs(data_path: str | os.PathLike[str], data_config: DataConfig) -> InputPlan:
    """Finds the files behind a data path without reading them.

    Only a `.txt` file is opened: it counts if it has tabs.

    Args:
        data_path, data_config: as in `plan_inputs`.

    Raises:
        DataError: as in `plan_inputs`, except for errors in the files' content.
    """
    path = resolve_data_path(data_path)
    files = files_for(path)
    with _readable(path):
        if data_config.train_files:
            return _with_corpora(_plan_given_files(path, data_config, files), data_config)
        if files.is_directory(path):
            return _with_corpora(_plan_directory(path, data_config, files), data_config)
        if files.exists(path):
            return _with_corpora(_plan_file(path, data_config, files), data_config)
        if "," in path:
            return _with_corpora(_plan_two_files(path, data_config, files), data_config)
    raise DataError(f"There is no file or folder {path}: check the path given as data.")


@contextlib.contextmanager
def _readable(path: str) -> Iterator[None]:
    """Raises an error of one sentence that names the unreadable file."""
    try:
        yield
    except StorageError:
        # It is a sentence already.
        raise
    except OSError as error:
        reason = error.strerror or error
        raise DataError(
            f"{error.filename or path} cannot be read ({reason}): check its permissions."
        ) from None


def readable_patterns(data_config: DataConfig) -> list[str]:
    """Returns glob patterns that match the files of a folder which can be read, by their names.

    Hidden files are left out, and capitals in a suffix make no difference. A `.txt` file matches
    whether it has tabs or not.
    """
    suffixes = [
        suffix for suffix, name in _FORMAT_OF_SUFFIX.items() if data_config.format in ("auto", name)
    ]
    patterns = ["".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in s) for s in suffixes]
    if data_config.format in ("auto", "lines"):
        languages = dict.fromkeys((data_config.source_language, data_config.target_language))
        if len(languages) == 2:
            patterns += [f".{glob.escape(language)}" for language in languages]
    return [f"[!.]*{pattern}{gz}" for pattern in patterns for gz in ("", "[.][gG][zZ]")]


def _unit(format_: str, base: str, names: Sequence[str], split: str = "") -> InputUnit:
    # A file name may hold bytes that are not UTF-8; its label in the outputs must.
    labels = tuple(name.encode("utf-8", "backslashreplace").decode("utf-8") for name in names)
    return InputUnit(format_, labels, tuple(os.path.join(base, name) for name in names), split)


def _format_of(path: str, config: DataConfig, files: Files) -> str | None:
    """Returns the format by the file's extension, or None if it is unknown."""
    if len(aligned_partners(path, config)) == 2:
        return "lines"
    extension = os.path.splitext(without_gz(path))[1].lower()
    format_ = _FORMAT_OF_SUFFIX.get(extension)
    if extension == _WITH_TABS and config.format == "auto" and not _has_tabs(path, files):
        return None
    if format_ == "tsv" and config.format == "csv" and config.separator == "\t":
        return "csv"
    return format_


def _has_tabs(path: str, files: Files) -> bool:
    return any(b"\t" in line for _, line in itertools.islice(raw_lines(path, files), 100))


def _with_corpora(plan: InputPlan, config: DataConfig) -> InputPlan:
    """Checks that each training file has a corpus, and each corpus a file; returns the plan."""
    if not config.corpora:
        return plan
    names = [unit.names[0] for unit in plan.units if unit.split not in SPLITS[1:]]
    numbers = [corpora.corpus_of(name, config.corpora) for name in names]
    for name, number in zip(names, numbers):
        if number < 0:
            raise DataError(
                f"The training file {name} matches no pattern of data.corpora: add one for it, "
                'such as "*" at the end.'
            )
    for number, pattern in enumerate(config.corpora):
        if number not in numbers:
            raise DataError(
                f"The corpus '{pattern}' of data.corpora names no training file (the files are "
                f"{', '.join(names[:5])}{', ...' if len(names) > 5 else ''}): correct the pattern "
                "or drop it; a file belongs to the first pattern that it matches."
            )
    return plan


def _plan_given_files(base: str, config: DataConfig, files: Files) -> InputPlan:
    if not files.is_directory(base):
        raise DataError(
            f"The recipe names its files (data.train_files), and {base} is not a folder: give the "
            "folder that contains them, or set data.train_files, data.eval_files and "
            "data.test_files to []."
        )
    units: list[InputUnit] = []
    taken: dict[tuple[str, ...], str] = {}
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
                        f"data.{split}_files: name each file once, for one split."
                    )
                taken[names] = split
                units.append(_unit(unit.format, base, names, split))
    return InputPlan(base, tuple(units))


def _names_of_entry(entry: str, key: str, base: str, files: Files) -> list[tuple[str, ...]]:
    """Returns the files that an entry of a recipe matches: one name each, or two aligned."""
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
    matches: list[list[str]] = []
    for part in parts:
        folder, name = os.path.split(part)
        if files.exists(os.path.join(base, part)):
            matches.append([part])
        elif files.is_directory(os.path.join(base, folder)):
            present = sorted(files.names_in(os.path.join(base, folder)))
            matching = (other for other in present if fnmatch.fnmatchcase(other, name))
            matches.append([os.path.join(folder, other) for other in matching])
        else:
            matches.append([])
        if not matches[-1]:
            raise DataError(
                f"The recipe names {part} in {key}, but {base} contains no such file: correct the "
                "key or the path."
            )
    if len(matches[0]) != len(matches[-1]):
        raise DataError(
            f"The entry '{entry}' of {key} matches {len(matches[0])} source and {len(matches[-1])} "
            "target files: each needs a partner."
        )
    return list(zip(*matches))


def _plan_file(path: str, config: DataConfig, files: Files) -> InputPlan:
    base, name = os.path.split(path)
    by_name = _format_of(path, config, files)
    format_ = by_name if config.format == "auto" else config.format
    if format_ is None:
        raise DataError(
            f"The type of {path} is unknown: give "
            f"{_READABLE.format(config.source_language, config.target_language)}, or name its type "
            "with data.format."
        )
    if format_ != "lines":
        return InputPlan(base, (_unit(format_, base, (name,)),))
    if by_name != "lines":
        raise DataError(
            f"{path} is one file and data.format is 'lines': give two files separated by a comma, "
            "source then target."
        )
    return InputPlan(base, (_unit("lines", base, _partners(name, config, base, files)),))


def _partners(name: str, config: DataConfig, base: str, files: Files) -> tuple[str, ...]:
    """Returns (source name, target name) of line-aligned files by either name."""
    names = aligned_partners(name, config)
    missing = names[1] if name == names[0] else names[0]
    if not files.exists(os.path.join(base, missing)):
        raise DataError(
            f"{os.path.join(base, name)} has no partner file {missing}: add it, or remove {name}."
        )
    return names


def _plan_two_files(data_path: str, config: DataConfig, files: Files) -> InputPlan:
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


def _plan_directory(base: str, config: DataConfig, files: Files) -> InputPlan:
    names = sorted(
        name
        for name in files.names_in(base)
        if not name.startswith(".") and not files.is_directory(os.path.join(base, name))
    )
    present = set(names)
    units: dict[tuple[str, ...], InputUnit] = {}
    ignored = []
    for name in names:
        format_ = _format_of(os.path.join(base, name), config, files)
        if format_ is None or config.format not in ("auto", format_):
            ignored.append(name)
        elif format_ == "lines":
            partners = _partners(name, config, base, files)
            units[partners] = _unit("lines", base, partners)
        elif name.lower().endswith(".mo") and name[:-3] + ".po" in present:
            # The .po has the same and more: fuzzy entries, comments, lines.
            continue
        else:
            units[(name,)] = _unit(format_, base, (name,))
    if not names:
        raise DataError(
            f"The folder {base} has no files (sub-folders are not read): put the data files into "
            "it."
        )
    if not units:
        readable = _READABLE.format(config.source_language, config.target_language)
        which = (
            ""
            if config.format == "auto"
            else f" of the type '{config.format}' that data.format asks for"
        )
        raise DataError(f"The folder {base} contains no readable file{which}: give {readable}.")
    return InputPlan(base, tuple(units[key] for key in sorted(units)), tuple(ignored))


def _check_units(plan: InputPlan, config: DataConfig, files: Files) -> InputPlan:
    """Checks the files of a plan, and returns it with those that cannot be read."""
    problems: list[str] = []
    for unit in plan.units:
        try:
            _check_unit(unit, config, files)
        except UnreadableFile as problem:
            problems.append(str(problem))
    if len(problems) == len(plan.units):
        raise DataError(problems[0])
    return dataclasses.replace(plan, unreadable_files=tuple(problems))


def _check_unit(unit: InputUnit, config: DataConfig, files: Files) -> None:
    format_ = FORMATS[unit.format]
    for path in unit.paths:
        if format_.is_utf8 and is_utf16(path, files):
            raise DataError(f"{path} is UTF-16: convert it to UTF-8.")
    if not format_.rejects_files and next(raw_lines(unit.paths[0], files), None) is None:
        raise DataError(f"{unit.paths[0]} is empty: fill it or remove it.")
    if config.extra_columns and not format_.has_columns:
        key = "data.source_features" if config.source_features else "data.slice_features"
        raise DataError(
            f"{unit.paths[0]} has no columns for {key}: give TSV, CSV or JSON Lines, or drop the "
            "key."
        )
    format_.check(unit, config, files)
