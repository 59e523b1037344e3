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
import shutil
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from benchmarks.peers import corpus, processes
from benchmarks.peers.job import Job

_loaded: dict[str, Any] = {}
# This program's names for our kinds of attention.
ATTENTION = {"bilinear": "general", "additive": "mlp", "dot": "dot"}
# The program's specials: <unk>, <blank>, <s>, </s>.
SPECIALS = 4
REPORTS = 3


#: Pairs to train on, and pairs to evaluate by.
Split: TypeAlias = tuple[Sequence[corpus.Pair], Sequence[corpus.Pair]]


def training_options(
    job: Job,
    pairs: Sequence[corpus.Pair],
    split: Split,
    folder: str | pathlib.Path,
    schedule: Mapping[str, Any],
) -> list[str]:
    """Returns the options of the training script, and writes the files that they name.

    Args:
        job: the sizes.
        pairs: the corpus, whose most frequent words are the vocabulary.
        split: the pairs that are read.
        folder: for files.
        schedule: options of the script for updates, checkpoints and evaluations, and others that
            replace those of a comparison of speed.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    chosen, evaluated = split
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
        "valid_batch_size": job.training_batch,
        "log_file": str(folder / "log"),
        "seed": 1,
        **schedule,
    }
    # The program reads YAML, which JSON is.
    path = folder / "config.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")
    return ["-config", str(path)]


def speed_options(
    job: Job, data: str, folder: str | pathlib.Path, updates: int, report_every: int
) -> list[str]:
    """Returns the options of a comparison of speed, over the corpus' first pairs.

    Args:
        job, data, folder: see `train`.
        updates: of the whole training.
        report_every: updates between evaluations.
    """
    pairs = corpus.read(data, "train")
    schedule = {
        "train_steps": updates,
        "save_checkpoint_steps": updates,
        "valid_steps": report_every,
        "report_every": report_every,
    }
    return training_options(job, pairs, corpus.training_pairs(pairs, job), folder, schedule)


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
    options = speed_options(sizes, data, folder, REPORTS * sizes.updates, sizes.updates)
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


# A training that is to converge holds out one pair in 50, as the eval_share of our recipe does.
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
    pairs = corpus.read(data, "train")
    held, others = corpus.held_out(pairs, HELD_OUT)
    of_a_pass = len(others) // sizes.training_batch
    updates = passes * of_a_pass
    schedule = {
        "train_steps": updates,
        "save_checkpoint_steps": of_a_pass,
        "keep_checkpoint": -1,
        "valid_steps": of_a_pass,
        "report_every": of_a_pass,
        "seed": seed,
        "dropout": [0.3],
        "learning_rate_decay": 0.5,
        "start_decay_steps": updates // 2,
        "decay_steps": max(1, updates // 12),
    }
    if not copying:
        schedule |= {"copy_attn": False, "reuse_copy_attn": False, "label_smoothing": 0.1}
    # The script appends to the log of a training that was broken off.
    shutil.rmtree(folder, ignore_errors=True)
    with processes.Timer() as timer:
        run_training(training_options(sizes, pairs, (others, held), folder, schedule))
    losses = read_evaluations((pathlib.Path(folder) / "log").read_text(encoding="utf-8"))
    if len(losses) != passes:
        raise RuntimeError(f"the training reported {len(losses)} evaluations of {passes}")
    best = min(range(passes), key=losses.__getitem__)
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

    run_training(speed_options(Job.from_json(job), data, folder, 1, 1))
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
        alpha: how strongly scores are normalised by length (Wu et al. 2016); by default as ours.
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
