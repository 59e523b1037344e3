"""What a data path stands for: the files that are read, in units."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class InputUnit:
    """What is read in one go: a file, or two line-aligned files (source, target).

    Attributes:
        format: one of `pipeline.recipes.choices.FORMATS`.
        names: the files as the user knows them, relative to the plan's base directory.
        paths: the same files as they are opened.
        split: the split that the recipe assigns these files to; empty where all files are divided.
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
        units: the files, in the order of their names, or of the recipe where it names them.
        ignored_files: names of files in the folder whose type is unknown. Hidden files, and a .mo
            file beside the .po file that it was made from, are not listed.
        unreadable_files: a sentence for each file that is rejected as a whole.
    """

    base_directory: str
    units: tuple[InputUnit, ...]
    ignored_files: tuple[str, ...] = ()
    unreadable_files: tuple[str, ...] = ()
