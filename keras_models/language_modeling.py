"""Training and measuring language models on one long stream of words.

A corpus is one stream of ids. Training cuts it into `batch_size` contiguous rows and walks along
them; `fit` offers two ways of walking, with `stride` s and L, the model's `window`:

    carry=False  Each update reads L words anew, takes the loss of the last s, and advances s. No
    state in the pointer's window
                 is stale: all are regenerated after each update (section 5.1 of Merity et al.
                 2016). Stride 1 is the paper's k_1 = 1, k_2 = L: each loss is backpropagated L
                 steps, at L times the work. The LSTMs begin a window with the state that the last
                 window had reached there. A row's first update takes the loss of all its words.
    carry=True   Truncated backpropagation: each update reads s new words and takes the loss of all
    of them; LSTM states and
                 pointer window are carried over, without gradient, as the weights before the update
                 made them.

Everything runs on TensorFlow and JAX through Keras' own compiled steps.
"""

import dataclasses
import math
import time

import keras
import numpy as np
from keras import ops

from keras_models.heads.pointer_sentinel import NO_WORD
from keras_models.losses import negative_log_likelihood
from keras_models.variables import assign, values_of

START_ID = 3  # a stream begins as if a sentence had just ended
PAD_ID = 0


def rows_of(ids, batch_size, start_id=START_ID):
    """Cuts a stream into contiguous rows.

    Args:
        ids: int `[words]`, the stream.
        batch_size: number of rows.
        start_id: the word before the stream's first.

    Returns:
        inputs and targets, int32 `[batch_size, length]`: each word's predecessor, and the word. The
        last row is padded with 0.

    Raises:
        ValueError: there are fewer words than rows.
    """
    ids = np.asarray(ids, "int32")
    if len(ids) < batch_size:
        raise ValueError(
            f"A stream of {len(ids)} words cannot be cut into {batch_size} rows: give more text."
        )
    length = -(-len(ids) // batch_size)
    padded = np.zeros(batch_size * length, "int32")
    inputs = padded.copy()
    padded[: len(ids)] = ids
    inputs[: len(ids)] = np.concatenate([[start_id], ids[:-1]])
    return inputs.reshape(batch_size, length), padded.reshape(batch_size, length)


def updates_of(length, window, stride, carry):
    """The updates of one walk along rows.

    Args:
        length: words of a row.
        window: L.
        stride: s.
        carry: whether states are carried: see the module.

    Returns:
        A list of (begin, end, losses): each update reads the words `begin..end - 1` and takes the
        loss of the last `losses` of them. Every word's loss is taken exactly once.

    Raises:
        ValueError: the stride is below 1, or above the window that it advances in.
    """
    if stride < 1 or (not carry and stride > window):
        raise ValueError(
            f"The stride must be between 1 and the window ({window}) where windows are read anew; "
            f"got {stride}."
        )
    if carry:
        return [
            (begin, min(begin + stride, length), min(stride, length - begin))
            for begin in range(0, length, stride)
        ]
    end = min(window, length)
    updates = [(0, end, end)]
    while end < length:
        # The last stride may be a shorter one. Windows always begin a multiple of the stride, where
        # the states are known.
        begin = updates[-1][0] + stride
        advanced = min(end + stride, length)
        updates.append((begin, advanced, advanced - end))
        end = advanced
    return updates


class StreamModel(keras.Model):
    """A language model that remembers its carry from one call to the next, as variables.

    Keras' compiled steps (`train_on_batch`, `predict_on_batch`) can then walk along a stream, on
    any backend.

    Args:
        model: a `LanguageModel`.
        batch_size: rows.
        stride: how many steps of a call the carry advances; None is all of them. With a stride the
            pointer's window is empty at the start of each call, because the call reads its words
            anew.

    Call arguments:
        inputs: dict of int `inputs` `[batch, time]` and `targets` `[batch, n]`, the words after the
            last n steps.

    Returns:
        float32 `[batch, n]`, log-probabilities of the targets.
    """

    def __init__(self, model, batch_size, stride=None, **kwargs):
        super().__init__(**kwargs)
        self.model = model
        self.batch_size = batch_size
        self.stride = stride
        self._template = model.initial_carry(batch_size)
        if stride is not None:
            self._template.pop("window", None)
        self.carry_variables = [
            self.add_weight(
                shape=tuple(value.shape),
                initializer=keras.initializers.Constant(NO_WORD if _is_int(value) else 0),
                dtype=keras.backend.standardize_dtype(value.dtype),
                trainable=False,
                autocast=False,
                name=f"carry_{index}",
            )
            for index, value in enumerate(keras.tree.flatten(self._template))
        ]
        self.built = True

    def build(self, input_shape=None):
        """Nothing: the model is built."""

    def reset(self):
        """Begins a text anew."""
        for variable in self.carry_variables:
            variable.assign(ops.full_like(variable.value, NO_WORD if _is_int(variable) else 0))

    def call(self, inputs, training=False):
        values = [variable.value for variable in self.carry_variables]
        carry = keras.tree.pack_sequence_as(self._template, values)
        lengths = ops.shape(inputs["inputs"])[1]
        if self.stride is not None:
            if self.model.points:
                carry["window"] = self.model.head.initial_window(
                    self.batch_size, self.model.hidden_size
                )
            # A row shorter than the stride is its own last update: nothing goes on from there.
            lengths = (
                ops.minimum(self.stride, lengths)
                if not isinstance(lengths, int)
                else min(self.stride, lengths)
            )
        log_prob, carry = self.model(
            inputs["inputs"],
            carry,
            targets=inputs["targets"],
            last=ops.shape(inputs["targets"])[1],
            lengths=lengths,
            training=training,
        )
        if self.stride is not None:
            carry.pop("window", None)
        for variable, value in zip(self.carry_variables, keras.tree.flatten(carry)):
            variable.assign(ops.stop_gradient(value))
        return log_prob

    def score(self, ids, chunk=None, start_id=START_ID):
        """Log-probability of each word of a stream, read from its beginning in chunks that carry
        states and window on.

        Args:
            ids: int `[words]`.
            chunk: words of a row read at a time; default the model's window. It changes memory and
                speed, no value.
            start_id: the word before the first.

        Returns:
            float32 `[words]`. With more than one row each row begins a text anew, which costs a
            little probability; exact is `batch_size=1`.
        """
        chunk = chunk or self.model.window
        inputs, targets = rows_of(ids, self.batch_size, start_id)
        padding = [
            (0, 0),
            (0, -inputs.shape[1] % chunk),
        ]  # one shape for all chunks; nothing is read after it
        inputs, padded = np.pad(inputs, padding), np.pad(targets, padding)
        self.reset()
        parts = []
        for begin in range(0, inputs.shape[1], chunk):
            part = slice(begin, begin + chunk)
            parts.append(
                self.predict_on_batch({"inputs": inputs[:, part], "targets": padded[:, part]})
            )
        return np.concatenate(parts, axis=1)[:, : targets.shape[1]].reshape(-1)[: len(ids)]


def _is_int(value):
    return "int" in keras.backend.standardize_dtype(value.dtype)


def perplexity_of(log_probs):
    """exp of the mean negative log-probability; infinite where a word is all but impossible."""
    nll = -float(np.mean(np.asarray(log_probs, "float64")))
    return math.exp(nll) if nll < 700 else math.inf


def perplexity(model, ids, batch_size=1, chunk=None, start_id=START_ID):
    """Perplexity of a stream: exp(- 1/N sum_t log p(w_t | all words before)).

    Args:
        model: a `LanguageModel`.
        ids: int `[words]`.
        batch_size, chunk, start_id: see `StreamModel.score`; with one row LSTM states and window
            are carried over the whole stream.
    """
    return perplexity_of(StreamModel(model, batch_size).score(ids, chunk, start_id))


class HalvingSchedule:
    """Halves the learning rate after a worse epoch, ends after a number of epochs without gain
    (section 5.2).

    Args:
        learning_rate: of the first epoch.
        patience: epochs without a new best after which training ends.

    Attributes:
        learning_rate: of the next epoch.
        best: lowest perplexity.
        improved: whether the last epoch was the best.
        stopped: whether training should end.
        state: all that it remembers, a dict, for a checkpoint; it can be set.
    """

    def __init__(self, learning_rate, patience=3):
        self.learning_rate = learning_rate
        self.patience = patience
        self.best = math.inf
        self.improved = False
        self.stopped = False
        self._last = math.inf
        self._without_gain = 0

    @property
    def state(self):
        return dict(vars(self))

    @state.setter
    def state(self, state):
        vars(self).update(state)

    def update(self, validation_perplexity):
        """Takes note of an epoch; a perplexity that is not a number counts as worse."""
        if not validation_perplexity <= self._last:
            self.learning_rate /= 2
        self._last = validation_perplexity if not math.isnan(validation_perplexity) else math.inf
        self.improved = validation_perplexity < self.best
        self._without_gain = 0 if self.improved else self._without_gain + 1
        self.best = min(self.best, self._last)
        self.stopped = self._without_gain >= self.patience


@dataclasses.dataclass(frozen=True)
class FitOptions:
    """How `fit` trains.

    Attributes:
        batch_size: rows; 32 in the paper.
        stride: s; None is the model's window. The paper's is 1.
        carry: see the module; the paper's is False.
        optimizer: `"adam"` or `"sgd"`. SGD at a rate of 1 is Zaremba et al.'s; it wants many
            epochs.
        learning_rate: of the first epoch; None is 0.002 for Adam, 1 for SGD.
        clip_norm: gradients are rescaled if their global norm exceeds it.
        max_epochs: at most so many.
        patience: epochs without a lower validation perplexity after which training ends.
        evaluation_batch_size: rows of the validation stream.
        max_seconds: training ends after the update in which so many have passed; None is no limit.
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
    jit_compile: bool = False

    LEARNING_RATES = {"adam": 0.002, "sgd": 1.0}  # noqa: RUF012 (no annotation: a class constant, not a field)

    def make_optimizer(self):
        """Returns the Keras optimizer.

        Raises:
            ValueError: there is none of that name here.
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
    """Trains a language model and leaves it with the weights of its best epoch by validation
    perplexity.

    Args:
        model: a `LanguageModel`.
        train_ids, valid_ids: int `[words]`, streams.
        options: `FitOptions`.
        on_epoch: called after each epoch with its entry of the history.
        state: what `checkpoint` was given in a training that did not end; this one then goes on
            from there.
        checkpoint: called after each update with a function without arguments that returns the
            training's state (a dict of lists, scalars and arrays), and with whether an epoch has
            just ended.

    Returns:
        The history, a list of dicts: `epoch`, `updates` (so far), `loss` (mean over the epoch's
        updates, dropout on), `perplexity` (validation), `learning_rate`, `seconds` (so far).

    Raises:
        ValueError: the text is too short for the rows, or no epoch ended with a finite perplexity.
    """
    options = options or FitOptions()
    stride = options.stride or model.window
    inputs, targets = rows_of(train_ids, options.batch_size)
    if len(valid_ids) < options.evaluation_batch_size:
        raise ValueError(
            f"A validation stream of {len(valid_ids)} words cannot be cut into "
            f"{options.evaluation_batch_size} rows."
        )
    updates = updates_of(inputs.shape[1], model.window, stride, options.carry)
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
            labels = targets[:, end - losses : end]
            loss = trainer.train_on_batch(
                {"inputs": inputs[:, begin:end], "targets": labels}, labels
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
