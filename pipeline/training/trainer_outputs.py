"""The outputs of a Trainer and their places: the network, the facts of its training,
checkpoints."""

import json
import os
from collections.abc import Mapping
from typing import Any, TypedDict, cast

# The file of a training's facts: see `read_history`.
HISTORY_FILE = "history.json"


class InitialFacts(TypedDict):
    """The weights that a training took from another model.

    Attributes:
        path: the folder of the model's version.
        weights: how many of the network's weights began with the model's.
        words: by the file of a vocabulary, how many of its entries the model knew, and how many
            there are.
    """

    path: str
    weights: int
    words: dict[str, tuple[int, int]]


class _CurvePoint(TypedDict):
    epoch: int
    seconds: float
    loss: float
    eval_loss: float


class CurvePoint(_CurvePoint, total=False):
    """An epoch on the curve of a training.

    Attributes:
        epoch: its number, from 1.
        seconds: since the training began.
        loss, eval_loss: means over the epoch.
        learning_rate, perplexity: of a language model alone.
        selected: the metric that `training.select_by` names, if that is not the loss.
    """

    learning_rate: float
    perplexity: float
    selected: float


class _TrainingFacts(TypedDict):
    head: str
    curve: list[CurvePoint]
    parameters: int
    seconds: float
    updates: int


class CorpusFacts(TypedDict):
    """A corpus of a mixture.

    Attributes:
        pairs: its training pairs that fit a bucket.
        reads: how often an epoch reads each of them.
    """

    pairs: int
    reads: float


class TrainingFacts(_TrainingFacts, total=False):
    """The facts of a training, as `history.json` holds them.

    Attributes:
        head: the recipe's `model.head`.
        curve: the epochs whose losses are finite.
        parameters: how many numbers the network has.
        seconds: how long the training took.
        updates: how many there were.
        steps_per_epoch: batches of an epoch.
        workers: how many processes or devices trained.
        pairs: training pairs.
        too_long: training pairs left out because no bucket holds them.
        corpora: of a mixture: the pairs of each corpus, and how often an epoch reads each of them.
        words: of a language model's text, by split.
        validation_perplexity: of a language model, the lowest.
        initialized_from: what was taken from another model.
        members: of an ensemble, the facts of each member's training.
        tuning: after a search, what `search_space.read_found` gave.
    """

    steps_per_epoch: int
    workers: int
    pairs: int
    too_long: int
    corpora: dict[str, CorpusFacts]
    words: dict[str, int]
    validation_perplexity: float
    initialized_from: InitialFacts
    members: list["TrainingFacts"]
    tuning: Mapping[str, Any]


def checkpoint_directory(model_run: str) -> str:
    """Returns the folder of a Trainer's checkpoints, beside those of its executions.

    No setting of the Trainer names it, so it takes no part in the Trainer's cache key.

    Args:
        model_run: the Trainer's `model_run` artifact.
    """
    return os.path.join(os.path.dirname(os.path.dirname(model_run.rstrip("/"))), "checkpoints")


def model_path(directory: str) -> str:
    """Returns where in the folder of a Trainer's model the trained network is."""
    return os.path.join(directory, "model.keras")


def read_history(model_run: str) -> TrainingFacts:
    """Returns the facts of a training from its `model_run` artifact."""
    with open(os.path.join(model_run, HISTORY_FILE), encoding="utf-8") as file:
        return cast(TrainingFacts, json.load(file))
