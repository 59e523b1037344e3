"""The share of right outputs: as a whole, token by token, and by their answer when run."""

import os
import sqlite3
from typing import Any

from pipeline.metrics import sql_child, sql_execution
from pipeline.metrics.base import (
    DenseMetric,
    FloatArray,
    Row,
    ScoringError,
    Share,
    ratio,
    share_or_one,
)
from pipeline.metrics.scored_texts import Segment
from pipeline.metrics.scoring_options import ScoringOptions


class ExactMatch(Share):
    """Share of the outputs that equal a reference, up to runs of white space."""

    counted = ("n", "matches")

    def __init__(self, options: ScoringOptions) -> None:
        pass

    def statistics(self, segment: Segment) -> Row:
        words = segment.hypothesis.split()
        return [any(words == reference.split() for reference in segment.references), 1]

    def own_signature(self) -> str:
        return "case:mixed|space:runs are one"


class TokenAccuracy(Share):
    """Share of the longer text's positions at which output and reference have the same token.

        sum over segments of |{i: output_i = reference_i}| / sum over segments of max(output tokens,
        reference tokens)

    It suits formal languages, where a token has its place; an extra token at the beginning makes
    all later ones wrong. Of several references a segment takes the one with the largest share.
    """

    cuts_words = True
    counted = ("positions", "equal")

    def __init__(self, options: ScoringOptions) -> None:
        self._tokens = options.tokenizer.tokens
        self._tokenization = options.tokenization

    def statistics(self, segment: Segment) -> Row:
        output = self._tokens(segment.hypothesis)
        counts = [
            [
                sum(one == other for one, other in zip(output, reference)),
                max(len(output), len(reference)),
            ]
            for reference in map(self._tokens, segment.references)
        ]
        return max(counts, key=share_or_one)

    def own_signature(self) -> str:
        return f"case:mixed|tok:{self._tokenization}"


class ExecutionAccuracy(DenseMetric):
    """Share of the outputs that, run as SQL by `sql_execution`, give the same answer as a
    reference.

    Rows are compared as a multiset, and in order if the reference orders them. An output that
    fails, harms or does not end is wrong. A segment without a reference that can be run is left out
    and counted as `gold_failed`.
    """

    size = 3
    unit = "share"
    always_defined = False

    def __init__(self, options: ScoringOptions) -> None:
        if not options.database:
            raise ScoringError(
                "The metric 'execution_accuracy' runs queries on a database: name it with "
                "evaluation.database, or --database."
            )
        self._database = os.fspath(options.database)

    def statistics(self, segment: Segment) -> Row:
        executor = sql_execution.executor_of(self._database)
        answers = {
            executor.same_answer(segment.hypothesis, reference) for reference in segment.references
        }
        return [True in answers, answers != {None}, answers == {None}]

    def value(self, sums: FloatArray) -> float | None:
        return ratio(sums[0], sums[1])

    def details(self, sums: FloatArray) -> dict[str, Any]:
        return {"n": int(sums[1]), "correct": int(sums[0]), "gold_failed": int(sums[2])}

    def own_signature(self) -> str:
        version = f"sqlite:{sqlite3.sqlite_version}|seconds:{sql_child.TIME_LIMIT_SECONDS:g}"
        return f"rows:multiset unless ordered|{version}"
