"""How fast we decode beside OpenNMT-py 3.5.1, beam 5, 20 forced tokens, sentences one by one and in
batches of 32.

    python -m benchmarks.peers.environments --peers opennmt_py      # once
    python -m benchmarks.peers.decoding --data PATH --output DIR [--trained DIR] [--free] [--rounds
    11] [--threads 2]

PATH is small_parallel_enja. Programs are loaded in processes of their own and take turns, round by
round; each gets the same sentences in the same batches, text in and text out. Both sides decode
with untrained weights of the same sizes (`job.py`), which changes nothing: every output has as many
tokens, which is checked. Of ours there are the signatures with XLA (`ours`) and without
(`ours_no_xla`), and both with a shortlist of 256 words (`ours_shortlist`, `ours_shortlist_no_xla`),
or of 128 (`ours_small_shortlist`).

Batches, though not single sentences, whose latency counts, can also be decoded side by side, each
by one thread: `ours_side_by_side`, `ours_shortlist_side_by_side` in one process, as `verbatim serve
--threads-per-batch 1` does and `verbatim evaluate`; peers by as many processes of one thread as
there are threads (`opennmt_py_side_by_side`, `ctranslate2_side_by_side`).

With --trained they decode with what `benchmarks.peers.training` left in its output: the same pairs,
as many updates, the same rate. With --free, too, lengths are left to both models, and the outputs'
BLEU stands beside the seconds, so that equal quality can be seen; choose `--sentences 500`, the
whole development set, for that. Forced, OpenNMT-py's own maximum of 20 takes 20 steps; ours takes a
21st, in which all hypotheses end.

`--body transformer` compares Transformers of six layers a side without copying, with CTranslate2
and Hugging Face's; `--programs` chooses, for instance OpenNMT-tf 2.32 too, whose GRU does not copy.
How quality would compare is known of OpenNMT-py alone: it alone is trained.

Writes DIR/decoding.json, decoding.md, decoding.svg, and each program's outputs and log.
"""

import argparse
import contextlib
import dataclasses
import json
import pathlib
import shutil
import sys

from benchmarks.peers import corpus, environments, floors, machine, picture, processes, rounds
from benchmarks.peers.job import Job


@dataclasses.dataclass(frozen=True)
class Side:
    """A program that takes part: its module, its environment (None:
    this one), what its `load`, its `decode` and its `make` take besides.

    Side by side, every batch has one thread, and as many batches are decoded at once as there are
    threads: by copies of a peer, by threads of ours.
    """

    module: str
    environment: str | None
    load: dict
    decode: dict
    make: dict = dataclasses.field(default_factory=dict)
    side_by_side: bool = False

    def start(self, python, threads, log):
        """Starts its process, or copies of it."""
        if not self.side_by_side:
            return processes.Program(python, self.module, threads, log)
        if self.environment:
            return processes.Copies(python, self.module, threads, log)
        return processes.Program(
            python, self.module, threads, log, variables={"TF_NUM_INTRAOP_THREADS": "1"}
        )

    @property
    def model(self):
        """Names the model, which programs may share."""
        return "_".join([self.module, *(f"{key}_{value}" for key, value in self.make.items())])


_TRANSFORMERS = "transformers_and_ctranslate2"
# Words that decoding chooses among, of 8,000; `benchmarks.heads` measures what a list of so many
# costs in quality: nothing (benchmarks/speed.md).
SHORTLIST = 256
SMALL_SHORTLIST = 128
PROGRAMS = {
    "ours": Side("ours", None, {}, {"signature": "serving_default"}),
    "ours_no_xla": Side("ours", None, {}, {"signature": "serving_default_no_xla"}),
    "ours_shortlist": Side(
        "ours", None, {}, {"signature": "serving_default"}, {"shortlist": SHORTLIST}
    ),
    "ours_shortlist_no_xla": Side(
        "ours", None, {}, {"signature": "serving_default_no_xla"}, {"shortlist": SHORTLIST}
    ),
    "ours_small_shortlist": Side(
        "ours", None, {}, {"signature": "serving_default"}, {"shortlist": SMALL_SHORTLIST}
    ),
    "opennmt_py": Side("opennmt_py", "opennmt_py", {}, {}),
    "opennmt_tf": Side("opennmt_tf", "opennmt_tf", {}, {}),
    "ctranslate2": Side(_TRANSFORMERS, "transformers", {"program": "ctranslate2"}, {}),
    "hugging_face": Side(_TRANSFORMERS, "transformers", {"program": "hugging_face"}, {}),
}
#: Who takes part by default; the first peer is the one that the others are compared with.
DEFAULTS = {
    "rnn": (
        "ours",
        "ours_no_xla",
        "ours_shortlist",
        "ours_shortlist_no_xla",
        "ours_small_shortlist",
        "opennmt_py",
    ),
    "transformer": ("ours", "ours_no_xla", "ctranslate2", "hugging_face"),
}
PROGRAMS |= {
    f"{name}_side_by_side": dataclasses.replace(PROGRAMS[name], side_by_side=True)
    for name in ("ours", "ours_shortlist", "ours_small_shortlist", "opennmt_py", "ctranslate2")
}
# Enough for about three seconds of a turn at either batch.
SENTENCES = {1: 32, 32: 256}


class WrongLength(RuntimeError):
    """Outputs that are not as long as they had to be."""


def start(name, job, options, made):
    """Starts a program and loads its model; returns it and the facts of its model.

    Args:
        made: dict from a model's name to its facts, which programs share; added to here.
    """
    side = PROGRAMS[name]
    threads = 1 if side.side_by_side else job.threads
    python = (
        environments.interpreter(side.environment, options.environments)
        if side.environment
        else sys.executable
    )
    program = side.start(python, job.threads, options.output / f"{name}.log")
    folder = options.output / "work" / side.model
    shared = {"job": dataclasses.replace(job, threads=threads).to_json(), "folder": str(folder)}
    if side.model not in made:
        # What an earlier comparison left there is of other sizes, maybe.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        trained = options.trained / "work" / side.module if options.trained else None
        if trained and side.module == "opennmt_py":
            made[side.model] = {"model": str(last_checkpoint(trained))}
        else:
            further = {"forced": not options.free} if side.module == "ours" else {}
            further |= {"trained": str(trained / "model")} if trained else {}
            print(
                f"  {name}: makes {'a' if trained else 'an untrained'} model",
                file=sys.stderr,
                flush=True,
            )
            made[side.model] = program.ask(
                "make", data=str(options.data), **shared, **side.make, **further
            )
    facts = made[side.model]
    loaded = program.ask(
        "load", model=facts["model"], forced=not options.free, **shared, **side.load
    )
    return program, {**facts, **loaded}


def last_checkpoint(folder):
    """Returns OpenNMT-py's checkpoint after the most updates.

    Raises:
        processes.ProgramError: there is none.
    """
    found = sorted(
        folder.glob("model_step_*.pt"), key=lambda path: int(path.stem.rpartition("_")[2])
    )
    if not found:
        raise processes.ProgramError(
            f"{folder} has no checkpoint: run benchmarks.peers.training first."
        )
    return found[-1]


def check_lengths(name, lengths, wanted):
    """Makes sure that all outputs are as long as they had to be.

    Raises:
        WrongLength: some are not.
    """
    if set(lengths) != {wanted}:
        raise WrongLength(
            f"{name} gave outputs of {min(lengths)} to {max(lengths)} tokens; all must have "
            f"{wanted}."
        )


def measure_batch(programs, batch, job, options):
    """Returns the rounds of all programs at one batch size, and each program's outputs."""
    pairs = corpus.read(options.data, "dev")
    count = options.sentences or SENTENCES.get(batch, 8 * batch)
    # Whole batches: ours pads the last one up.
    chosen = corpus.sentences(pairs, -(-count // batch) * batch)
    texts, outputs = [pairs[number][0] for number in chosen], {}

    names = [name for name in programs if batch > 1 or not PROGRAMS[name].side_by_side]

    def measure(name):
        answer = programs[name].ask("decode", texts=texts, batch=batch, **PROGRAMS[name].decode)
        if not options.free:
            check_lengths(name, answer["lengths"], job.length)
        outputs[name] = answer["outputs"]
        tokens = sum(answer["lengths"])
        return {
            "ms": 1000 * answer["seconds"] / len(texts),
            "cpu_ms": 1000 * answer["cpu_seconds"] / len(texts),
            "tokens_per_second": tokens / answer["seconds"],
            "peak_bytes": answer["peak_bytes"],
        }

    found = rounds.interleave(names, options.rounds, measure)
    return found, outputs, [pairs[number][1] for number in chosen]


def summarize(batch, found, floor_ms, against):
    """Returns the figures of one batch size, for JSON and table."""
    figures = rounds.figure(found, "ms", against)
    worked = rounds.figure(found, "cpu_ms")
    for name, one in figures.items():
        one["cpu_ms"] = worked[name]
        one["share_of_floor"] = floor_ms / one["median"]
        one["peak_bytes"] = max(taken[name]["peak_bytes"] for taken in found)
    return {"batch": batch, "floor_ms": floor_ms, "figures": figures}


def table(batches, against):
    """Returns the Markdown table of what `summarize` returned for each batch size."""
    head = [
        "batch",
        "program",
        "ms a sentence",
        f"times {against}",
        "share of the floor",
        "CPU ms a sentence",
        "BLEU",
        "peak, MB",
    ]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for one in batches:
        for name, figure in one["figures"].items():
            bleu = one.get("bleu", {}).get(name)
            cells = [
                str(one["batch"]),
                name,
                rounds.with_spread(figure, 2),
                rounds.with_spread(figure["ratio"], 2) if "ratio" in figure else "",
                f"{figure['share_of_floor']:.0%}",
                f"{figure['cpu_ms']['median']:.2f}",
                "" if bleu is None else f"{bleu:.1f}",
                f"{figure['peak_bytes'] / 1e6:,.0f}",
            ]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def bleu(outputs, references):
    """Returns the BLEU of each program's outputs, all detokenized alike:
    they are words with spaces.
    """
    from pipeline.metrics import scoring
    from pipeline.metrics.scored_texts import ScoredTexts
    from pipeline.metrics.scoring_options import ScoringOptions

    options = ScoringOptions(
        language=corpus.LANGUAGES[1], tokenization="whitespace", bootstrap_samples=0
    )
    return {
        name: scoring.score(["bleu"], ScoredTexts(texts, references), options)["bleu"].value
        for name, texts in outputs.items()
    }


def write(output, report):
    """Writes JSON, table and picture."""
    text = [
        "# Decoding beside peers",
        "",
        machine.sentence(report["machine"], report["job"]["threads"]),
        "",
    ]
    text += [table(report["batches"], report["against"])]
    text += ["![Milliseconds a sentence](decoding.svg)", ""]
    text += [f"- {name}: {facts['version']}" for name, facts in report["programs"].items()]
    text += ["", floors.table(report["rates"], Job(**report["job"]), report["source_length"])]
    (output / "decoding.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    (output / "decoding.md").write_text("\n".join(text), encoding="utf-8")
    groups = [
        {
            "title": f"Batch {one['batch']}: ms a sentence, median and range of the rounds",
            "figures": one["figures"],
        }
        for one in report["batches"]
    ]
    picture.write(output / "decoding.svg", "Milliseconds a sentence", groups)
    print("\n".join(text))


def parse():
    """Returns the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--data", required=True, type=pathlib.Path, help="folder of small_parallel_enja"
    )
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument(
        "--trained", type=pathlib.Path, help="what benchmarks.peers.training had as its --output"
    )
    parser.add_argument(
        "--free",
        action="store_true",
        help="leave lengths to trained models, and compare their BLEU",
    )
    parser.add_argument("--body", default=Job.body, choices=tuple(DEFAULTS))
    parser.add_argument(
        "--programs",
        help=f"some of {', '.join(PROGRAMS)}, with commas; by default those of the body",
    )
    parser.add_argument("--environments", type=pathlib.Path, default=environments.FOLDER)
    parser.add_argument("--batches", default="1,32")
    parser.add_argument(
        "--sentences", type=int, help="of a turn; by default 32 one by one, 256 in batches of 32"
    )
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--attention", default=Job.attention, choices=("bilinear", "additive", "dot")
    )
    options = parser.parse_args()
    if options.free and not options.trained:
        parser.error("--free needs trained models: give --trained")
    if options.trained and options.trained.resolve() == options.output.resolve():
        parser.error(
            "--output must be another folder than --trained, whose models it would replace"
        )
    names = options.programs.split(",") if options.programs else DEFAULTS[options.body]
    if unknown := [name for name in names if name not in PROGRAMS]:
        parser.error(f"no program is called {unknown[0]}; there are {', '.join(PROGRAMS)}")
    if options.trained and (
        others := [name for name in names if PROGRAMS[name].module not in ("ours", "opennmt_py")]
    ):
        parser.error(f"benchmarks.peers.training does not train {others[0]}")
    options.programs = names
    return options


def main():
    """Measures all programs at all batch sizes and writes the report."""
    options = parse()
    batches = tuple(int(batch) for batch in options.batches.split(","))
    body = {"body": options.body, "embedding": Job.hidden} if options.body == "transformer" else {}
    job = Job(threads=options.threads, attention=options.attention, batches=batches, **body)
    names = options.programs
    against = next((name for name in names if not name.startswith("ours")), names[0])
    options.output.mkdir(parents=True, exist_ok=True)
    facts = machine.describe()
    rates = floors.measured_rates(job.threads, options.output / "rates.log")
    sources = [source for source, _ in corpus.read(options.data, "dev")]
    source_length = round(sum(len(source.split()) for source in sources) / len(sources))
    report = {
        "job": vars(job),
        "machine": facts,
        "rates": rates,
        "source_length": source_length,
        "against": against,
    }
    report |= {"programs": {}, "batches": []}
    with contextlib.ExitStack() as stack:
        programs, made = {}, {}
        for name in names:
            programs[name], report["programs"][name] = start(name, job, options, made)
            stack.enter_context(programs[name])
        for batch in batches:
            found, outputs, references = measure_batch(programs, batch, job, options)
            floor_ms = (
                1000
                * floors.seconds(floors.decoding_products(job, batch, source_length), rates)
                / batch
            )
            one = summarize(batch, found, floor_ms, against)
            if options.free:
                one["bleu"] = bleu(outputs, references)
            report["batches"].append(one)
            for name, texts in outputs.items():
                path = options.output / f"{name}-{batch}.txt"
                path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    write(options.output, report)


if __name__ == "__main__":
    try:
        main()
    except (processes.ProgramError, WrongLength) as error:
        raise SystemExit(str(error)) from None
