"""Where a figure comes from: the code, the day, the machine and the packages."""

import datetime
import os
import pathlib
import platform
import re
import subprocess
from collections.abc import Iterable
from importlib import metadata

from benchmarks.records.record import Machine, Origin

_ROOT = pathlib.Path(__file__).parents[2]
#: The packages that make a model, as `RunFacts.versions` calls them.
PACKAGES = ("tfx", "tensorflow", "keras")


def commit(root: pathlib.Path = _ROOT) -> str:
    """Returns the commit of a checkout, with a `+` where tracked files have changed since.

    Result files and tables do not count: a campaign writes them as it goes.
    """

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        head = git("rev-parse", "--short=12", "HEAD")
        ours = ("--", ".", ":!benchmarks/results", ":!docs", ":!*.md")
        changed = git("status", "--porcelain", "--untracked-files=no", *ours)
    except OSError:  # git is not installed
        return ""
    return f"{head}+" if changed else head


def machine(cores: int | None = None, with_load: bool = False, accelerator: str = "") -> Machine:
    """Returns the facts of this machine.

    Args:
        cores: how many the program uses; by default all that it may.
        with_load: whether other work would change the figures, so that the load is noted.
        accelerator: the model's name, where one is used.
    """
    cpus = pathlib.Path("/proc/cpuinfo")
    model = re.search(r"model name\s*:\s*(.+)", cpus.read_text()) if cpus.exists() else None
    return Machine(
        processor=model[1] if model else platform.processor() or platform.machine(),
        cores=len(os.sched_getaffinity(0)) if cores is None else cores,
        memory_gb=round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1),
        accelerator=accelerator,
        load=round(os.getloadavg()[0], 2) if with_load else None,
    )


def stack(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Returns the versions of Python and of those packages that are installed."""
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def day(seconds: float | None = None) -> str:
    """Returns a day in UTC, such as `2026-11-26`: today, or that of seconds since 1970."""
    zone = datetime.timezone.utc
    moment = datetime.datetime.now(zone)
    if seconds is not None:
        moment = datetime.datetime.fromtimestamp(seconds, zone)
    return moment.date().isoformat()


def origin(command: str, of_machine: Machine, packages: Iterable[str] = PACKAGES) -> Origin:
    """Returns the `Origin` of what this process measured."""
    return Origin(command, commit(), day(), of_machine, stack(packages))
