"""OpenNMT-py 3.5.1's side of a comparison, in its own environment: its trainer, its translator.

Three faults of this version concern models that copy. Two are worked around here: `load_state_dict`
finds the copy generator's weights only among the model's, and `InferenceEngine` builds its iterator
without the copy maps. The third is that greedy search fails with copying, so beams of one are not
measured.
"""

import argparse
import json
import math
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.peers import corpus, processes
from benchmarks.peers.job import Job

_loaded: dict[str, Any] = {}
# This program's names for our kinds of attention.
ATTENTION = {"bilinear": "general", "additive": "mlp", "dot": "dot"}
# The program's specials: <unk>, <blank>, <s>, </s>.
SPECIALS = 4
REPORTS = 3


def training_options(
    job: Job,
    data: str,
    folder: str | pathlib.Path,
    updates: int,
    report_every: int,
    parts: tuple[Sequence[corpus.Pair], Sequence[corpus.Pair]] | None = None,
    further: Mapping[str, Any] | None = None,
) -> list[str]:
    """Returns the options of the training script, and writes the files that they name.

    Args:
        job, data, folder: see `train`.
        updates: of the whole training.
        report_every: updates between evaluations.
        parts: pairs to train on, and to evaluate by; by default the corpus' first ones.
        further: options that replace those of a comparison of speed.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    pairs = corpus.read(data, "train")
    chosen, evaluated = parts or corpus.training_pairs(pairs, job)
    for side, everything, texts, others in zip(
        ("src", "tgt"), zip(*pairs), zip(*chosen), zip(*evaluated)
    ):
        words = corpus.frequent_words(everything, job.vocabulary - SPECIALS)
        for name, lines in {"vocab": words, "train": texts, "eval": others}.items():
            (folder / f"{name}.{side}").write_text(
                "".join(f"{line}\n" for line in lines), encoding="utf-8"
            )

    def paths(split: str) -> dict[str, str]:
        return {f"path_{side}": str(folder / f"{split}.{side}") for side in ("src", "tgt")}

    config = {
        "data": {
            "corpus": {**paths("train"), "transforms": [], "weight": 1},
            "valid": {**paths("eval"), "transforms": []},
        },
        "src_vocab": str(folder / "vocab.src"),
        "tgt_vocab": str(folder / "vocab.tgt"),
        "src_vocab_size": job.vocabulary,
        "tgt_vocab_size": job.vocabulary,
        "save_model": str(folder / "model"),
        **_network(job),
        "hidden_size": job.hidden,
        "word_vec_size": job.embedding,
        "dropout": [0.2],
        "batch_type": "sents",
        "batch_size": job.training_batch,
        "bucket_size": len(chosen),
        "optim": "adam",
        "learning_rate": job.learning_rate,
        "max_grad_norm": 1.0,
        "train_steps": updates,
        "save_checkpoint_steps": updates,
        "valid_steps": report_every,
        "valid_batch_size": job.training_batch,
        "report_every": report_every,
        "log_file": str(folder / "log"),
        "seed": 1,
        **(further or {}),
    }
    # The program reads YAML, which JSON is.
    path = folder / "config.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")
    return ["-config", str(path)]


def _network(job: Job) -> dict[str, Any]:
    """Returns the options of the network's kind."""
    if job.body == "rnn":
        return {
            "encoder_type": "brnn",
            "decoder_type": "rnn",
            "rnn_type": "GRU",
            "layers": 1,
            "global_attention": ATTENTION[job.attention],
            "copy_attn": True,
            # As in our head, the attention that reads is the one that copies.
            "reuse_copy_attn": True,
        }
    return {
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "layers": job.layers,
        "heads": job.heads,
        "transformer_ff": job.feed_forward,
        "attention_dropout": [0.2],
        "position_encoding": True,
        "param_init": 0.0,
        "param_init_glorot": True,
    }


def run_training(options: Sequence[str]) -> None:
    """Runs the training script."""
    from onmt.bin import train
    from onmt.utils import parse

    # The parser of its command line, which demands the configuration file among the arguments.
    parser = train._get_parser()
    parsed, _ = parser.parse_known_args(options)
    assert isinstance(parser, parse.ArgumentParser)
    train.train(parsed)


_REPORT = re.compile(
    r"Step\s+(\d+)/.*xent:\s*([\d.]+);.*bsz:\s*(\d+)/\s*(\d+)/\s*(\d+);\s*(\d+)/\s*(\d+) tok/s"
)


def read_reports(log: str) -> list[dict[str, float]]:
    """Returns the progress that the training script reported.

    Returns:
        List of dicts: `update`, `loss` (nats a target token), `pairs` of an update, `source_rate`
        and `target_rate` (tokens a second), each of the updates since the last report.
    """
    names = ("update", "loss", None, None, "pairs", "source_rate", "target_rate")
    return [
        {name: float(value) for name, value in zip(names, match.groups()) if name}
        for match in _REPORT.finditer(log)
    ]


def read_evaluations(log: str) -> list[float]:
    """Returns the losses of the reported evaluations, in nats a target token."""
    perplexities = re.findall(r"Validation perplexity:\s*([\d.e+]+)", log)
    return [math.log(float(perplexity)) for perplexity in perplexities]


def train(job: str, data: str, folder: str) -> processes.Answer:
    """Trains on the corpus' first pairs for as many epochs as ours.

    Returns:
        Rates from the end of the first epoch on.
    """
    import torch

    sizes = Job.from_json(job)
    options = training_options(sizes, data, folder, REPORTS * sizes.updates, sizes.updates)
    run_training(options)
    log = (pathlib.Path(folder) / "log").read_text(encoding="utf-8")
    reports = read_reports(log)
    measured = reports[1:]
    if not measured:
        raise RuntimeError("the training reported no progress")

    def mean_rate(key: str) -> float:
        # All reports are of equally many tokens, so seconds are averaged.
        return len(measured) / sum(1 / report[key] for report in measured)

    return {
        "version": f"OpenNMT-py 3.5.1, torch {torch.__version__}",
        "parameters": count_parameters(
            torch.load(checkpoint_path(folder, REPORTS * sizes.updates))
        ),
        "source_rate": mean_rate("source_rate"),
        "target_rate": mean_rate("target_rate"),
        "pairs_an_update": reports[-1]["pairs"],
        "losses": [[int(report["update"]), report["loss"]] for report in reports],
        "eval_losses": [
            [int(report["update"]), loss] for report, loss in zip(reports, read_evaluations(log))
        ],
    }


# One pair of so many is held out of a training that is to converge, as our recipe's eval_share.
HELD_OUT = 50


def converge(
    job: str, data: str, folder: str, passes: int, seed: int, copying: bool
) -> processes.Answer:
    """Trains on the whole corpus; the learning rate halves six times in the second half.

    Without copying the training smooths labels, which the program's loss for copying cannot do.

    Returns:
        The checkpoint with the lowest loss of the held-out pairs, its pass, and the passes' losses.
    """
    import torch

    sizes = Job.from_json(job)
    torch.set_num_threads(sizes.threads)
    held, pairs = corpus.held_out(corpus.read(data, "train"), HELD_OUT)
    of_a_pass = len(pairs) // sizes.training_batch
    updates = passes * of_a_pass
    further = {
        "seed": seed,
        "dropout": [0.3],
        "param_init": 0.1,
        "save_checkpoint_steps": of_a_pass,
        "keep_checkpoint": -1,
        "learning_rate_decay": 0.5,
        "start_decay_steps": updates // 2,
        "decay_steps": max(1, updates // 12),
    }
    if not copying:
        further |= {"copy_attn": False, "reuse_copy_attn": False, "label_smoothing": 0.1}
    with processes.Timer() as timer:
        run_training(
            training_options(sizes, data, folder, updates, of_a_pass, (pairs, held), further)
        )
    losses = read_evaluations((pathlib.Path(folder) / "log").read_text(encoding="utf-8"))
    best = min(range(len(losses)), key=losses.__getitem__)
    return {
        **timer.facts,
        "version": f"OpenNMT-py 3.5.1, torch {torch.__version__}",
        "model": str(checkpoint_path(folder, (best + 1) * of_a_pass)),
        "best_pass": best + 1,
        "eval_losses": losses,
    }


def checkpoint_path(folder: str | pathlib.Path, updates: int) -> pathlib.Path:
    """Returns where the training script puts its checkpoint."""
    return pathlib.Path(folder) / f"model_step_{updates}.pt"


def count_parameters(checkpoint: dict[str, Any]) -> int:
    """Returns the number of a checkpoint's parameters."""
    return sum(
        value.numel()
        for part in ("model", "generator")
        for value in (checkpoint[part] or {}).values()
    )


def make(job: str, data: str, folder: str) -> processes.Answer:
    """Writes a checkpoint of the job's sizes after one update."""
    import torch

    run_training(training_options(Job.from_json(job), data, folder, 1, 1))
    path = checkpoint_path(folder, 1)
    return {"model": str(path), "parameters": count_parameters(torch.load(path))}


def mend(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Moves the copy generator's weights to where this version looks for them."""
    generator = checkpoint.get("generator") or {}
    for name in [name for name in generator if name.startswith(("linear.", "linear_copy."))]:
        checkpoint["model"][f"generator.{name}"] = generator.pop(name)
    return checkpoint


def load(model: str, job: str, folder: str, forced: bool, alpha: float = 1.0) -> processes.Answer:
    """Loads a checkpoint for a beam search.

    Args:
        model: path of the checkpoint that the training script wrote.
        job: a `Job`, as JSON.
        folder: for files.
        forced: whether outputs have exactly `job.length` tokens.
        alpha: how strongly scores are normalised by length (Wu et al. 2016).
    """
    import torch
    from onmt.inference_engine import InferenceEnginePY
    from onmt.opts import translate_opts
    from onmt.utils.parse import ArgumentParser

    sizes = Job.from_json(job)
    torch.set_num_threads(sizes.threads)
    # Copies of this program, which load at the same time, have a file each.
    mended = pathlib.Path(folder) / f"mended-{os.getpid()}.pt"
    torch.save(mend(torch.load(model)), mended)
    lengths = (
        {"min_length": sizes.length, "max_length": sizes.length}
        if forced
        else {"max_length": sizes.longest}
    )
    # Its default length ratio would end outputs of short sources early.
    values: dict[str, Any] = {
        "model": mended,
        "src": "-",
        "beam_size": sizes.beam,
        "batch_type": "sents",
        "max_length_ratio": 0,
        **lengths,
    }
    # Our default: the normalisation of Wu et al. 2016 at full strength.
    values |= {"output": pathlib.Path(folder) / "outputs", "length_penalty": "wu", "alpha": alpha}
    parser = ArgumentParser()
    translate_opts(parser)
    options = parser.parse_args(
        [word for name, value in values.items() for word in (f"-{name}", str(value))]
    )
    ArgumentParser.validate_translate_opts(options)
    ArgumentParser._get_all_transform_translate(options)
    ArgumentParser._validate_transforms_opts(options)
    ArgumentParser.validate_translate_opts_dynamic(options)
    _loaded["options"], _loaded["engine"] = options, InferenceEnginePY(options)
    return {"version": f"OpenNMT-py 3.5.1, torch {torch.__version__}"}


def decode(texts: list[str], batch: int) -> processes.Answer:
    """Translates texts in batches, short ones first.

    Returns:
        Seconds, outputs and their numbers of tokens.
    """
    from onmt.constants import CorpusTask
    from onmt.inputters.dynamic_iterator import build_dynamic_dataset_iter

    engine, options = _loaded["engine"], argparse.Namespace(**vars(_loaded["options"]))
    options.batch_size = batch
    with processes.Timer() as timer:
        batches = build_dynamic_dataset_iter(
            options,
            engine.transforms_cls,
            engine.vocabs,
            copy=True,
            task=CorpusTask.INFER,
            src=texts,
            device_id=engine.device_id,
        )
        _, hypotheses = engine.translator._translate(batches, batches.transforms, False, False)
    outputs = [best[0] for best in hypotheses]
    return {
        **timer.facts,
        "outputs": outputs,
        "lengths": [len(output.split(" ")) for output in outputs],
    }


if __name__ == "__main__":
    processes.serve(
        {"make": make, "load": load, "decode": decode, "train": train, "converge": converge}
    )
