"""What a comparison ran on, for its report."""

import os
import pathlib
import platform
import re
from typing import TypedDict


class Machine(TypedDict):
    """A machine, and how busy it was before."""

    processor: str
    cores: int
    memory_gb: float
    system: str
    load: float


def describe() -> Machine:
    """Returns the facts of this machine."""
    cpus = pathlib.Path("/proc/cpuinfo")
    model = re.search(r"model name\s*:\s*(.+)", cpus.read_text()) if cpus.exists() else None
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": model[1] if model else platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(pages / 1e9, 1),
        "system": platform.platform(),
        "load": round(os.getloadavg()[0], 2),
    }


def sentence(facts: Machine, threads: int) -> str:
    """Returns the facts as a line of Markdown, with a warning if others were working."""
    busy = ""
    if facts["load"] > 0.5:
        busy = f" **The machine was busy (load {facts['load']}): these figures mean nothing.**"
    return (
        f"{facts['processor']}, {facts['cores']} cores, {facts['memory_gb']} GB, "
        f"{facts['system']}; {threads} threads for each program.{busy}"
    )
