"""How often outputs are right: as a whole, token by token, and by what they answer when run."""

import sqlite3

from pipeline.metrics import sql_execution
from pipeline.metrics.base import (
    DEFAULT_SEED,
    Metric,
    ScoringError,
    Share,
    join_signature,
    ratio,
    share_or_one,
)
from pipeline.text.tokenization import Tokenizer


class ExactMatch(Share):
    """Share of the outputs that equal a reference;
    how much white space stands where makes no difference.
    """

    counted = ("n", "matches")

    def __init__(self, **unused):
        pass

    def statistics(self, hypothesis, references, source):
        found = hypothesis.split()
        return [any(found == reference.split() for reference in references), 1]

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return join_signature("case:mixed|space:runs are one", samples, seed, references)


class TokenAccuracy(Share):
    """Share of the positions at which output and reference hold the same token, of those that the
    longer one has.

        sum over segments of |{i: output_i = reference_i}| / sum over segments of max(output tokens,
        reference tokens)

    It suits formal languages, where a token has its place; a token too many early on costs all that
    follow. Of several references a segment takes the one with the largest share.
    """

    counted = ("positions", "equal")

    def __init__(self, tokenization="text", **unused):
        self._tokens = Tokenizer(tokenization).tokens
        self._tokenization = tokenization

    def statistics(self, hypothesis, references, source):
        found = self._tokens(hypothesis)
        counts = []
        for wanted in map(self._tokens, references):
            counts.append(
                [
                    sum(one == other for one, other in zip(found, wanted)),
                    max(len(found), len(wanted)),
                ]
            )
        return max(counts, key=share_or_one)

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return join_signature(f"case:mixed|tok:{self._tokenization}", samples, seed, references)


class ExecutionAccuracy(Metric):
    """Share of the outputs that, run as SQL, answer what a reference answers
    (`pipeline.metrics.sql_execution`).

    Rows are compared as a multiset, in their order where the reference orders them. An output that
    fails, harms or does not end is wrong. A segment no reference of which can be run says nothing
    about its output: it is counted apart, as `gold_failed`.
    """

    size = 3
    unit = "share"
    always_defined = False

    def __init__(self, database=None, **unused):
        if not database:
            raise ScoringError(
                "The metric 'execution_accuracy' runs queries on a database: name it with "
                "evaluation.database, or --database."
            )
        self._database = database

    def statistics(self, hypothesis, references, source):
        executor = sql_execution.executor_of(str(self._database))
        answers = {executor.same_answer(hypothesis, reference) for reference in references}
        return [True in answers, answers != {None}, answers == {None}]

    def value(self, sums):
        return ratio(sums[0], sums[1])

    def details(self, sums):
        return {"n": int(sums[1]), "correct": int(sums[0]), "gold_failed": int(sums[2])}

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        version = f"sqlite:{sqlite3.sqlite_version}|seconds:{sql_execution.TIME_LIMIT_SECONDS:g}"
        return join_signature(f"rows:multiset unless ordered|{version}", samples, seed, references)
