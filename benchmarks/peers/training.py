"""How fast we train beside peers: the same pairs, sizes and pairs an update.

    python -m benchmarks.peers.training --data PATH --output DIR [--body transformer] [--rounds 5]
    [--updates 40] [--threads 2]

The recurrent network is compared with OpenNMT-py's; the Transformer, which does not copy, also with
Hugging Face's Marian in a loop of PyTorch's. Both are trained in bfloat16, too
(`training.mixed_precision`, and PyTorch's autocast); OpenNMT-py has nothing like it for processors.

Each turn is a training of its own, in a process of its own: by the Trainer's `run_fn`, and by the
peer's training script, over the first 64 x UPDATES pairs of small_parallel_enja, three times. Rates
are from the end of the first pass on, so start-up and tracing are left out; each includes an
evaluation after each pass, of the same 64 pairs. Updates of ours hold pairs of one length each, 64
on average, the peer's 64 pairs. The loss after each pass, in nats a target token, stands beside the
rates, so that equal progress an update can be seen. With a large vocabulary that loss is over the
words of the smaller softmax; the evaluation's, over all words, says what the smaller one costs.
Seconds to the common loss end where the evaluation's loss has fallen to a value that all programs
reach. They follow from the rate, without start-up; between passes the loss falls in a straight
line. The loss at which a peer ended is a harder test: each peer has a figure of how many times as
fast the fastest of ours in the same precision reached it.

Writes DIR/training.json, training.md and training.svg; --record writes the table as a result file.
"""

import argparse
import dataclasses
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.peers import (
    arguments,
    corpus,
    environments,
    floors,
    machine,
    picture,
    processes,
    rounds,
)
from benchmarks.peers.decoders import LABELS
from benchmarks.peers.job import Job
from benchmarks.records import measuring
from benchmarks.records.record import MeasuredRow
from benchmarks.tables import measured as tables
from pipeline.common import whole_files


class Trainer(NamedTuple):
    """A program that trains: its module, its environment (None: this one), further arguments."""

    module: str
    environment: str | None
    arguments: Mapping[str, int]


# Words in the softmax of an update, of 8,000: those of its targets, and the most frequent (the
# large-vocabulary trick). Words that are drawn, as many as by the recipe's default, represent the
# others.
LARGE_VOCABULARY = 1000
PROGRAMS = {
    "ours": Trainer("ours", None, {}),
    "ours_large_vocabulary": Trainer("ours", None, {"large_vocabulary": LARGE_VOCABULARY}),
    "ours_mixed": Trainer("ours", None, {"mixed_precision": True}),
    "ours_mixed_large_vocabulary": Trainer(
        "ours", None, {"mixed_precision": True, "large_vocabulary": LARGE_VOCABULARY}
    ),
    "opennmt_py": Trainer("opennmt_py", "opennmt_py", {}),
    "hugging_face": Trainer("transformers_and_ctranslate2", "transformers", {}),
    "hugging_face_mixed": Trainer(
        "transformers_and_ctranslate2", "transformers", {"mixed_precision": True}
    ),
}
#: The programs of each kind of network.
DEFAULTS = {
    "rnn": ("ours", "ours_large_vocabulary", "opennmt_py"),
    "transformer": (
        "ours",
        "ours_large_vocabulary",
        "ours_mixed",
        "ours_mixed_large_vocabulary",
        "opennmt_py",
        "hugging_face",
        "hugging_face_mixed",
    ),
}
#: The sizes of the Transformer: it is to be trained in minutes.
TRANSFORMER: Mapping[str, Any] = {
    "embedding": 256,
    "hidden": 256,
    "layers": 3,
    "heads": 4,
    "feed_forward": 1024,
}


def measure(name: str, job: Job, options: argparse.Namespace) -> rounds.Facts:
    """Trains with a program in a new process; returns its facts."""
    module, environment, further = PROGRAMS[name]
    python = (
        environments.interpreter(environment, options.environments)
        if environment
        else sys.executable
    )
    folder = options.output / "work" / name
    # A training must not resume from the checkpoint of the one before.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with processes.Program(python, module, job.threads, options.output / f"{name}.log") as program:
        return program.ask(
            "train", job=job.to_json(), data=str(options.data), folder=str(folder), **further
        )


def floor_rate(job: Job, pairs: Sequence[corpus.Pair], rates: floors.Rates) -> float:
    """Returns the most target tokens a second that the machine allows for pairs of mean lengths."""
    source, target = (
        round(sum(len(pair[side].split()) for pair in pairs) / len(pairs)) for side in (0, 1)
    )
    products = floors.training_products(job, job.training_batch, source, target + 1)
    return job.training_batch * (target + 1) / floors.seconds(products, rates)


def common_loss(measured: Sequence[rounds.Round]) -> float | None:
    """Returns the highest of the trainings' last evaluation losses: all of them reached it.

    It is None where a training has no evaluations.
    """
    ends = [
        facts["eval_losses"][-1][1] if facts.get("eval_losses") else None
        for taken in measured
        for facts in taken.values()
    ]
    known = [end for end in ends if end is not None]
    return max(known) if len(known) == len(ends) else None


def seconds_to(loss: float, facts: rounds.Facts, tokens: float) -> float:
    """Returns the seconds of training until the evaluation's loss has fallen to a value.

    Between two evaluations the loss is taken for a straight line. One that is low enough at the
    first evaluation counts as reached there.

    Args:
        loss: one that the training reached.
        facts: its `eval_losses`, `pairs_an_update` and `target_rate`.
        tokens: target tokens of a pair, its end among them.
    """
    (before, above), *_ = points = facts["eval_losses"]
    updates = float(before)
    for update, value in points:
        updates = float(update)
        if value <= loss:
            if above > value and above > loss:
                updates = before + (update - before) * (above - loss) / (above - value)
            break
        before, above = update, value
    return updates * facts["pairs_an_update"] * tokens / facts["target_rate"]


def leads(measured: Sequence[rounds.Round], tokens: float) -> dict[str, rounds.Spread]:
    """Returns how many times as fast the fastest of ours reaches a peer's last loss.

    Of ours, those that compute in the peer's precision are compared.

    Args:
        measured: the rounds, whose facts `seconds_to` takes.
        tokens: target tokens of a pair, its end among them.

    Returns:
        Dict from the name of a peer, without those whose loss none of ours reached in a round.
    """
    leads_of_peers: dict[str, rounds.Spread] = {}

    def is_mixed(name: str) -> bool:
        return bool(PROGRAMS[name].arguments.get("mixed_precision"))

    for peer in (name for name in measured[0] if PROGRAMS[name].environment):
        own = [
            name
            for name in measured[0]
            if PROGRAMS[name].environment is None and is_mixed(name) == is_mixed(peer)
        ]
        ratios: list[float] = []
        for taken in measured:
            loss = taken[peer]["eval_losses"][-1][1]
            ours = [
                seconds_to(loss, taken[name], tokens)
                for name in own
                if taken[name]["eval_losses"][-1][1] <= loss
            ]
            if ours:
                ratios.append(seconds_to(loss, taken[peer], tokens) / min(ours))
        if len(ratios) == len(measured):
            leads_of_peers[peer] = rounds.spread(ratios)
    return leads_of_peers


def rows(
    figures: Mapping[str, rounds.Figure],
    last: rounds.Round,
    floor: float,
    to_loss: Mapping[str, rounds.Figure] | None = None,
    lead: Mapping[str, rounds.Spread] | None = None,
) -> list[MeasuredRow]:
    """Returns the rows of the result file.

    Args:
        figures: target tokens a second by the name of the program.
        last: the facts of the last trainings.
        floor: target tokens a second that the machine allows.
        to_loss: seconds until all have the same loss of the evaluation, likewise; or None.
        lead: what `leads` returned; or None.
    """
    return [
        measuring.row(
            {"program": LABELS.get(name, name)},
            {
                "rate": measuring.spread(figure),
                "source_rate": measuring.one(last[name]["source_rate"]),
                "times": measuring.spread(figure["ratio"]),
                "floor": measuring.one(figure["median"] / floor),
                "pairs_an_update": measuring.one(last[name]["pairs_an_update"]),
                "updates": measuring.one(last[name]["losses"][-1][0]),
                "loss": measuring.one(last[name]["losses"][-1][1]),
                "eval_loss": measuring.one(
                    last[name]["eval_losses"][-1][1] if last[name].get("eval_losses") else None
                ),
                "seconds_to_loss": measuring.spread(to_loss[name]) if to_loss else None,
                "times_to_loss": measuring.spread(to_loss[name]["ratio"]) if to_loss else None,
                "lead": measuring.spread(lead[name]) if lead and name in lead else None,
                "parameters": measuring.one(last[name]["parameters"]),
                "peak_mb": measuring.one(last[name]["peak_bytes"] / 1e6),
            },
        )
        for name, figure in figures.items()
    ]


def main() -> None:
    """Trains in turn and writes the report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add(parser)
    parser.add_argument("--body", default=Job.body, choices=tuple(DEFAULTS))
    parser.add_argument("--programs", help="their names, with commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=Job.updates)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--attention", default=Job.attention, choices=("bilinear", "additive", "dot")
    )
    options = parser.parse_args()
    job = Job(
        threads=options.threads,
        attention=options.attention,
        updates=options.updates,
        body=options.body,
    )
    if options.body == "transformer":
        job = dataclasses.replace(job, **TRANSFORMER)
    chosen = (options.programs or ",".join(DEFAULTS[options.body])).split(",")
    names, notes = environments.taking_part(
        {name: PROGRAMS[name].environment for name in chosen}, LABELS, options.environments
    )
    against = "opennmt_py" if "opennmt_py" in names else names[-1]
    options.output.mkdir(parents=True, exist_ok=True)
    facts, measured_on = machine.describe(), measuring.machine(job.threads)
    rates = floors.measured_rates(job.threads, options.output / "rates.log")
    # Every training is a new process: there is nothing to warm up.
    measured = rounds.interleave(
        names, options.rounds, lambda name: measure(name, job, options), warm_up=0
    )
    figures = rounds.figure(measured, "target_rate", against, lower_is_better=False)
    pairs, _ = corpus.training_pairs(corpus.read(options.data, "train"), job)
    floor = floor_rate(job, pairs, rates)
    to_loss, lead = None, None
    if (loss := common_loss(measured)) is not None:
        tokens = sum(len(target.split()) + 1 for _, target in pairs) / len(pairs)
        measured = [
            {
                name: {**of_one, "seconds_to_loss": seconds_to(loss, of_one, tokens)}
                for name, of_one in taken.items()
            }
            for taken in measured
        ]
        to_loss = rounds.figure(measured, "seconds_to_loss", against)
        lead = leads(measured, tokens)
        notes = [*notes, f"The loss that all reached is {loss:.2f} nats a token."]
    table = measuring.table_of(
        rows(figures, measured[-1], floor, to_loss, lead),
        options.rounds,
        measured_on,
        notes=notes,
    )
    text = ["# Training beside peers", "", machine.sentence(facts, job.threads), ""]
    text += [
        f"Times {against}:",
        "",
        tables.plain(table),
        "",
        "![Target tokens a second](training.svg)",
        "",
    ]
    text += [f"- {name}: {one['version']}" for name, one in measured[-1].items()]
    report = {
        "job": dataclasses.asdict(job),
        "machine": facts,
        "rates": rates,
        "floor": floor,
        "figures": figures,
    }
    report |= {"rounds": measured}
    whole_files.write_json(options.output / "training.json", report)
    whole_files.write_text(options.output / "training.md", "\n".join(text) + "\n")
    group: picture.Group = {
        "title": "Target tokens a second, median and range of the rounds",
        "figures": figures,
    }
    picture.write(options.output / "training.svg", "Target tokens a second", [group])
    print("\n".join(text))
    measuring.write(options.record, table)


if __name__ == "__main__":
    try:
        main()
    except processes.ProgramError as error:
        raise SystemExit(str(error)) from None
