"""A model in a process of its own, whose start `benchmarks.serving.start` measures step by step."""

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.peers import processes

if TYPE_CHECKING:
    from serving import Model

_loaded: "list[Model]" = []


def facts() -> processes.Answer:
    """Returns how long this process has worked, and its memory."""
    return {
        "cpu_seconds": processes.cpu_seconds_of("self"),
        "resident_bytes": processes.memory_of("self", "VmRSS"),
    }


def import_library() -> processes.Answer:
    """Imports what loads models."""
    importlib.import_module("serving.model")
    return facts()


def load(folder: str, programs: str) -> processes.Answer:
    """Loads a model; `programs` is a folder for what XLA compiles, or empty."""
    from serving import Model, compiled_programs

    if programs:
        compiled_programs.keep(programs)
    _loaded.append(Model(folder))
    return facts()


def answer(batches: Sequence[Sequence[str]]) -> processes.Answer:
    """Asks for batches of texts, one after the other."""
    for texts in batches:
        _loaded[-1].predict(texts)
    return facts()


if __name__ == "__main__":
    processes.serve({"import": import_library, "load": load, "answer": answer})
