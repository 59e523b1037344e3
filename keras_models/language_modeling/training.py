"""Training of a language model on a stream."""

import dataclasses
import math
import time

import keras
from keras import ops

from keras_models.language_modeling.halving_schedule import HalvingSchedule
from keras_models.language_modeling.stream_model import StreamModel, perplexity_of
from keras_models.language_modeling.streams import Rows, updates_of
from keras_models.losses import negative_log_likelihood
from keras_models.variables import assign, values_of


@dataclasses.dataclass(frozen=True)
class FitOptions:
    """How `fit` trains. "The paper" is Merity et al. 2016.

    Attributes:
        batch_size: number of rows; 32 in the paper.
        stride: by how many words an update advances. None means the model's window. The paper's is
            1.
        carry: True is truncated backpropagation: an update reads only new words, and states and
            window carry over from the update before. False, as in the paper: an update reads a
            whole window again and takes the loss of its last `stride` words.
        optimizer: `"adam"` or `"sgd"`. SGD with a rate of 1, as in Zaremba et al. 2014, needs many
            epochs.
        learning_rate: learning rate of the first epoch. None means 0.002 for Adam, 1 for SGD.
        clip_norm: gradients are rescaled if their global norm exceeds it.
        max_epochs: the maximum number of epochs.
        patience: number of epochs without a new lowest validation perplexity after which training
            stops.
        evaluation_batch_size: number of rows of the validation stream.
        max_seconds: training stops after the update in which this time runs out. None means no
            limit.
        keep_first: whether the initial weights compete with those of the epochs to be the best; for
            a model that continues from another one.
        jit_compile: whether steps are compiled by XLA; JAX always does.
    """

    batch_size: int = 32
    stride: int | None = None
    carry: bool = True
    optimizer: str = "adam"
    learning_rate: float | None = None
    clip_norm: float = 1.0
    max_epochs: int = 64
    patience: int = 3
    evaluation_batch_size: int = 1
    max_seconds: float | None = None
    keep_first: bool = False
    jit_compile: bool = False

    LEARNING_RATES = {"adam": 0.002, "sgd": 1.0}  # noqa: RUF012 (no annotation: a class constant, not a field)

    def make_optimizer(self):
        """Returns the Keras optimizer.

        Raises:
            ValueError: the name is neither `"adam"` nor `"sgd"`.
        """
        if self.optimizer not in self.LEARNING_RATES:
            raise ValueError(
                f"optimizer must be one of {', '.join(self.LEARNING_RATES)}; got "
                f"{self.optimizer!r}."
            )
        rate = (
            self.LEARNING_RATES[self.optimizer]
            if self.learning_rate is None
            else self.learning_rate
        )
        make = keras.optimizers.Adam if self.optimizer == "adam" else keras.optimizers.SGD
        return make(rate, global_clipnorm=self.clip_norm or None)


def fit(model, train_ids, valid_ids, options=None, on_epoch=None, state=None, checkpoint=None):
    """Trains a language model, and leaves it with the weights of its best epoch.

    The best epoch is the one with the lowest validation perplexity.

    Args:
        model: a `LanguageModel`.
        train_ids, valid_ids: int `[words]`, streams.
        options: `FitOptions`.
        on_epoch: called after each epoch with its entry of the history.
        state: the state of an interrupted training, to resume it; see `checkpoint`.
        checkpoint: called after each update with two arguments: a function without arguments that
            returns the training's state (a dict of lists, scalars and arrays), and whether an epoch
            has just ended.

    Returns:
        The history, a list of dicts: `epoch`, `updates` (so far), `loss` (mean over the epoch's
        updates, dropout on), `perplexity` (validation), `learning_rate`, `seconds` (so far).

    Raises:
        ValueError: the text is too short for the rows, or no epoch ended with a finite perplexity.
    """
    options = options or FitOptions()
    stride = options.stride or model.window
    rows = Rows(train_ids, options.batch_size)
    if len(valid_ids) < options.evaluation_batch_size:
        raise ValueError(
            f"A validation stream of {len(valid_ids)} words cannot be cut into "
            f"{options.evaluation_batch_size} rows."
        )
    updates = updates_of(rows.length, model.window, stride, options.carry)
    trainer = StreamModel(model, options.batch_size, stride=None if options.carry else stride)
    optimizer = options.make_optimizer()
    trainer.compile(
        optimizer=optimizer, loss=negative_log_likelihood, jit_compile=options.jit_compile or "auto"
    )
    if keras.backend.backend() == "tensorflow" and not options.jit_compile:
        trainer.jit_compile = False
    evaluator = StreamModel(model, options.evaluation_batch_size)
    schedule = HalvingSchedule(
        float(ops.convert_to_numpy(optimizer.learning_rate)), options.patience
    )
    best, history, done, started = None, [], 0, time.monotonic()
    expired = False
    epoch, taken = 1, 0  # updates of the epoch that are done
    optimizer.build(trainer.trainable_variables)
    variables = [*trainer.variables, *optimizer.variables]
    if state:
        assign(variables, state["variables"])
        epoch, taken, done, history = (state[key] for key in ("epoch", "taken", "done", "history"))
        best, schedule.state, expired = state["best"], state["schedule"], state["expired"]
        started -= state["seconds"]
    elif options.keep_first:
        schedule.begin_with(perplexity_of(evaluator.score(valid_ids)))
        best = model.get_weights()

    def state_now():
        return {
            "epoch": epoch,
            "taken": taken,
            "done": done,
            "history": history,
            "best": best,
            "schedule": schedule.state,
            "expired": expired,
            "seconds": time.monotonic() - started,
            "variables": values_of(variables),
            "metrics": values_of(trainer.metrics_variables),
        }

    while epoch <= options.max_epochs and not schedule.stopped and not expired:
        trainer.reset_metrics()
        if taken:
            # The mean of the epoch's losses so far.
            assign(trainer.metrics_variables, state["metrics"])
        else:
            optimizer.learning_rate.assign(schedule.learning_rate)
            trainer.reset()
        loss = math.nan
        for begin, end, losses in updates[taken:]:
            labels = rows.targets(end - losses, end)
            loss = trainer.train_on_batch(
                {"inputs": rows.inputs(begin, end), "targets": labels}, labels
            )
            done += 1
            taken += 1
            expired = (
                options.max_seconds is not None
                and time.monotonic() - started >= options.max_seconds
            )
            if expired:
                break
            if checkpoint and taken < len(updates):
                checkpoint(state_now, False)
        rate = schedule.learning_rate
        measured = perplexity_of(evaluator.score(valid_ids))
        schedule.update(measured)
        if schedule.improved:
            best = model.get_weights()
        history.append(
            {
                "epoch": epoch,
                "updates": done,
                "loss": float(loss[0] if isinstance(loss, (list, tuple)) else loss),
                "perplexity": measured,
                "learning_rate": rate,
                "seconds": round(time.monotonic() - started, 1),
            }
        )
        if on_epoch:
            on_epoch(history[-1])
        epoch, taken = epoch + 1, 0
        if checkpoint:
            checkpoint(state_now, True)
    if best is None:
        raise ValueError("The training gave no finite perplexity: lower the learning rate.")
    model.set_weights(best)
    return history
