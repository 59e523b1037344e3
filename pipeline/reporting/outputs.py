"""Each system's outputs for the test split, in files beside a run's report."""

import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import TypedDict

from pipeline.common.errors import VerbatimError
from pipeline.common.whole_files import whole_file
from pipeline.export.served_model import Answer

#: The folder of these files in a run's folder.
OUTPUTS_FOLDER = "outputs"


class OutputRecord(TypedDict):
    """A line of the file: a pair, and the answer without its attention."""

    source: str
    reference: str
    text: str
    tokens: list[str]
    copied_from: list[int]
    copy_probability: list[float]
    source_tokens: list[str]
    score: float


class OutputsError(VerbatimError, ValueError):
    """Outputs that cannot be read; its message is one sentence for the user."""


def outputs_path(directory: str | os.PathLike[str], system: str) -> pathlib.Path:
    """Returns the path of a system's outputs in `OUTPUTS_FOLDER` or in another folder."""
    return pathlib.Path(directory) / f"{system}.jsonl"


def write_outputs(
    directory: str | os.PathLike[str],
    sources: Sequence[str],
    references: Sequence[str],
    answers: Mapping[str, Sequence[Answer]],
) -> None:
    """Writes `NAME.jsonl` for each system.

    Args:
        directory: the folder of the files, made if missing.
        sources, references: the pairs.
        answers: by system, one for each pair.
    """
    pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
    for name, of_system in answers.items():
        with whole_file(outputs_path(directory, name)) as file:
            for source, reference, answer in zip(sources, references, of_system, strict=True):
                record: OutputRecord = {
                    "source": source,
                    "reference": reference,
                    "text": answer["text"],
                    "tokens": answer["tokens"],
                    "copied_from": answer["copied_from"],
                    "copy_probability": answer["copy_probability"],
                    "source_tokens": answer["source_tokens"],
                    "score": answer["score"],
                }
                file.write(json.dumps(record, ensure_ascii=False) + "\n")


def read_outputs(path: pathlib.Path) -> list[OutputRecord] | None:
    """Returns the records of a file; None if the file is missing or empty.

    Raises:
        OutputsError: it cannot be understood.
    """
    try:
        with open(path, encoding="utf-8") as file:
            records: list[OutputRecord] = [json.loads(line) for line in file]
        if not all(
            isinstance(text, str)
            for record in records
            for text in (record["source"], record["reference"], record["text"])
        ):
            raise ValueError("a text is missing")
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise OutputsError(f"The outputs {path} cannot be understood: {error}.") from None
    return records or None
