"""What a command says about the translations of documents: records, counts, and refusals."""

import argparse
import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.commands import output
from pipeline.commands.command_error import CommandError
from pipeline.documents.document import Document
from pipeline.documents.translation import Outcome, refused_places

if TYPE_CHECKING:
    from serving.answers import Answer

# How many refused places are named on standard error; `--json` names all.
_MOST_NAMED = 20


@dataclasses.dataclass(frozen=True)
class Shown:
    """What records show of each answer beside its text; nothing, where no records are asked for.

    Attributes:
        n_best: all outputs of the beam.
        scores: the score.
        provenance: the tokens, and where they were copied from.
    """

    n_best: bool = False
    scores: bool = False
    provenance: bool = False

    @classmethod
    def of(cls, options: argparse.Namespace) -> "Shown":
        """Returns what the options of `add_arguments` ask for."""
        return cls(options.n_best, options.scores, options.provenance)

    def __bool__(self) -> bool:
        return self.n_best or self.scores or self.provenance


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds `--n-best`, `--scores` and `--provenance`, which `Shown.of` reads."""
    parser.add_argument(
        "--n-best", action="store_true", help="write JSON Lines with all outputs of the beam"
    )
    parser.add_argument("--scores", action="store_true", help="write JSON Lines with scores")
    parser.add_argument(
        "--provenance",
        action="store_true",
        help="write JSON Lines with each token, and where it was copied from",
    )


def records(document: Document, outcomes: Sequence[Outcome], shown: Shown) -> bytes:
    """Returns JSON Lines: an object for each place of a document, in the order of the file."""
    records: list[dict[str, Any]] = [
        *({"line": line, "source": ""} for line in document.blank),
        *({"line": line, "refused": reason} for line, reason in document.problems),
    ]
    for segment, outcome in zip(document.segments, outcomes):
        record: dict[str, Any] = {"line": segment.line, "source": segment.text}
        if outcome.reason:
            record["refused"] = outcome.reason
        outputs = [_output(answer, shown) for answer in outcome.answers]
        if shown.n_best:
            record["outputs"] = outputs
        elif outputs:
            record.update(outputs[0])
        records.append(record)
    records.sort(key=lambda record: int(record["line"]))
    return "".join(output.json_line(record) + "\n" for record in records).encode("utf-8")


def _output(answer: "Answer", shown: Shown) -> dict[str, Any]:
    from serving.answers import long_text_record, token_record

    record: dict[str, Any] = {"target": answer.text, **long_text_record(answer)}
    if shown.scores or shown.n_best:
        record["score"] = answer.score
    if shown.provenance:
        record["tokens"] = [token_record(token) for token in answer.tokens]
    return record


def facts_of(document: Document, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Returns the counts of a document, and the places that were split, cut off or refused."""
    refused = refused_places(document, outcomes)
    split, cut_off = [], []
    for segment, outcome in zip(document.segments, outcomes):
        if outcome.reason:
            continue
        answer = outcome.answers[0]
        if answer.parts > 1:
            split.append({"line": segment.line, "parts": answer.parts})
        if answer.tokens_dropped:
            cut_off.append({"line": segment.line, "tokens_dropped": answer.tokens_dropped})
    return {
        "texts": len(document.segments),
        "translated": sum(not outcome.reason for outcome in outcomes),
        "blank": len(document.blank),
        "translated_before": document.translated_before,
        "split": split,
        "cut_off": cut_off,
        "refused": [{"line": line, "reason": reason} for line, reason in refused],
    }


def counts(facts: Mapping[str, Any]) -> str:
    """Returns the counts of one file for people."""
    split = f", {len(facts['split'])} of them in sentences" if facts["split"] else ""
    return (
        f"{facts['output']}: {facts['translated']} translated{split}, {facts['blank']} blank, "
        f"{facts['translated_before']} translated before, {len(facts['refused'])} refused"
    )


def refuse(facts: Sequence[Mapping[str, Any]]) -> None:
    """Names what was cut off or refused.

    Raises:
        CommandError: something was.
    """
    cut_off = [(one, fact["input"]) for fact in facts for one in fact["cut_off"]]
    for one, path in cut_off[:_MOST_NAMED]:
        _print_on_standard_error(
            f"verbatim: Line {one['line']} of {path} is too long for the model: its last "
            f"{one['tokens_dropped']} tokens are not translated."
        )
    if len(cut_off) > _MOST_NAMED:
        more = len(cut_off) - _MOST_NAMED
        _print_on_standard_error(f"verbatim: {more} more texts were cut off; --json names them.")
    refused = list(_named(facts))
    for sentence in refused[:_MOST_NAMED]:
        _print_on_standard_error(f"verbatim: {sentence}")
    if refused:
        more = len(refused) - _MOST_NAMED
        others = f" {more} more are named by --json." if more > 0 else ""
        places = "1 place was" if len(refused) == 1 else f"{len(refused)} places were"
        stay = "stays" if len(refused) == 1 else "stay"
        raise CommandError(f"{places} refused and {stay} untranslated.{others}")


def _named(facts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for fact in facts:
        for one in fact["refused"]:
            yield f"Line {one['line']} of {fact['input']}: {one['reason'].rstrip('.')}."


def _print_on_standard_error(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
