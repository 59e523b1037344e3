"""The pointer sentinel over a language model's own past (Merity et al. 2016)."""

import keras
from keras import ops

from keras_models import debugging
from keras_models.argument_shapes import check_axes
from keras_models.heads.pointer_sentinel import PointerSentinel
from keras_models.layers.gathering import take_along

# In a window's words: the position is still empty.
NO_WORD = -1
_AXES = {
    "hidden": ("batch", "time", "hidden_size"),
    "words": ("batch", "time"),
    "window['states']": ("batch", "window", "hidden_size"),
    "window['words']": ("batch", "window"),
    "targets": ("batch", "steps"),
}


@keras.saving.register_keras_serializable("verbatim")
class PointerSentinelWindow(PointerSentinel):
    """The pointer sentinel of a language model: it points at the last L words of its own past.

    Position i of the window carries the pair (h_i, w_i), where h_i is the recurrent network's
    output after reading w_i, and the pointer's mass a_i goes to that word w_i. Step t has read w_t
    and predicts w_{t+1}: its query is made of h_t, and it sees the L pairs t-L+1, ..., t, including
    itself; this is why the paper projects the query (section 2.2: "the most recent word (since this
    word may be repeated)"). With fewer than L positions read, it sees all of them.

        q_t  = tanh(W h_t + b),   z_i = q_t . h_i  for i = t-L+1..t
        a    = softmax([z; q_t . s]),   g = a_sentinel
        p(w_{t+1} = w) = g softmax(U h_t + c)_w + sum_{i: w_i = w} a_i

    All steps of a chunk are computed at once, with a banded mask over the window carried in and the
    chunk itself. Words are ids below V, or extended ids of words that have none; these get
    probability only from the pointer.

    Args:
        vocabulary_size: V.
        window: L.

    Call arguments:
        hidden: `[batch, time, hidden_size]`, h_t.
        words: int `[batch, time]`, the words that were read, w_t; `NO_WORD` (-1) at padding, which
            nothing points at.
        window: dict of `states` `[batch, L, hidden_size]` and `words` int `[batch, L]`: what the
            last chunk returned; None is an empty one.
        targets: int `[batch, n]`, w_{t+1} for the last n steps; None asks for whole distributions.
        last: n, how many of the chunk's last steps are returned; all if None. The softmax is
            computed only for these.
        lengths: after how many steps of this chunk the returned window ends: an int, or int
            `[batch]`; all if None.
        size: number of extended ids of whole distributions, default V. It must exceed every word.

    Returns:
        log_probs: float32 `[batch, n]` of the targets, or `[batch, n, size]`.
        window: the L pairs that the last of `lengths` steps saw, oldest first.

    Example:

    >>> import numpy as np
    >>> from keras_models.heads import PointerSentinelWindow
    >>> head = PointerSentinelWindow(vocabulary_size=10, window=4)
    >>> words = np.array([[5, 6, 7]])
    >>> log_prob, window = head(np.ones((1, 3, 8)), words, targets=np.array([[6, 7, 5]]))
    >>> tuple(log_prob.shape)
    (1, 3)
    >>> np.asarray(window["words"]).tolist()
    [[-1, 5, 6, 7]]

    References:
        Merity et al. 2016, "Pointer Sentinel Mixture Models", https://arxiv.org/abs/1609.07843
    """

    # It has no source, so what other heads read of one is an error.
    _takes_all = False

    def __init__(self, vocabulary_size, window=100, **kwargs):
        super().__init__(vocabulary_size, **kwargs)
        if window < 1:
            raise ValueError(f"window must be at least 1; got {window}.")
        self.window = window

    def build(self, hidden_shape):
        super().build(hidden_shape)

    def initial_window(self, batch_size, hidden_size):
        """Returns an empty window."""
        return {
            "states": ops.zeros((batch_size, self.window, hidden_size), dtype=self.compute_dtype),
            "words": ops.full((batch_size, self.window), NO_WORD, dtype="int32"),
        }

    def call(self, hidden, words, window=None, targets=None, last=None, lengths=None, size=None):
        batch, length = ops.shape(words)
        if window is None:
            window = self.initial_window(batch, hidden.shape[-1])
        states = ops.concatenate([ops.cast(window["states"], hidden.dtype), hidden], axis=1)
        words = ops.concatenate([window["words"], ops.cast(words, "int32")], axis=1)
        first = 0 if last is None else length - last
        queries = hidden if last is None else hidden[:, -last:]
        # Chunk step t stands at position L + t; it sees positions t + 1 .. t + L.
        steps = ops.expand_dims(ops.arange(first, length, dtype="int32"), 1)
        positions = ops.expand_dims(ops.arange(self.window + length, dtype="int32"), 0)
        band = ops.logical_and(positions > steps, positions <= steps + self.window)
        mask = ops.logical_and(ops.expand_dims(band, 0), ops.expand_dims(words >= 0, 1))
        log_weights, log_gate = self._attend(queries, states, mask)
        if targets is not None:
            # A target of NO_WORD must not meet the empty positions; these have weight 0 in any
            # case.
            log_probs = self._target_log_prob(
                queries, log_weights, log_gate, words, ops.maximum(targets, 0)
            )
        else:
            log_probs = self._distributions(
                queries,
                log_weights,
                log_gate,
                words,
                self.vocabulary_size if size is None else size,
            )
        return log_probs, self._window_after(states, words, length if lengths is None else lengths)

    def check_arguments(self, arguments):
        """Raises ValueError if the arguments of `call`, a dict, do not fit together."""
        owner, window = type(self).__name__, arguments.get("window") or {}
        parts = {"window['states']": window.get("states"), "window['words']": window.get("words")}
        sizes = check_axes(owner, {**arguments, **parts}, _AXES, {"window": self.window})
        last = arguments.get("last")
        if isinstance(last, int) and sizes.get("steps", last) != last:
            raise ValueError(
                f"{owner}: targets must have the axes [batch, last]; got {sizes['steps']} targets "
                f"for last={last}."
            )
        # How many ids there are is known where whole distributions are asked for.
        size = arguments.get("size") or (
            self.vocabulary_size if arguments.get("targets") is None else None
        )
        for name in ("words", "targets"):
            debugging.check_range(owner, name, arguments.get(name), NO_WORD, size)

    def _window_after(self, states, words, lengths):
        if len(getattr(lengths, "shape", ())) == 0:
            return {
                "states": states[:, lengths : lengths + self.window],
                "words": words[:, lengths : lengths + self.window],
            }
        index = ops.expand_dims(ops.cast(lengths, "int32"), 1) + ops.arange(
            self.window, dtype="int32"
        )
        return {
            "states": take_along(states, index),
            "words": take_along(words, index),
        }

    def step(self, hidden, words, window, size=None):
        """One step of generation.

        Args:
            hidden: `[batch, hidden_size]`, h_t.
            words: int `[batch]`, w_t, the words just read.
            window: what `call` or the last `step` returned.
            size: number of extended ids, default V.

        Returns:
            log_probs: float32 `[batch, size]`.
            copy_log_probs: float32 `[batch, L]`, log a_i for the positions of the new window.
            window: the new window, of which the last position is this step.
        """
        window = {
            "states": ops.concatenate(
                [window["states"][:, 1:], ops.cast(hidden, self.compute_dtype)[:, None]], axis=1
            ),
            "words": ops.concatenate(
                [window["words"][:, 1:], ops.cast(words, "int32")[:, None]], axis=1
            ),
        }
        queries = ops.expand_dims(hidden, 1)
        log_weights, log_gate = self._attend(queries, window["states"], window["words"] >= 0)
        size = self.vocabulary_size if size is None else size
        log_probs = self._distributions(queries, log_weights, log_gate, window["words"], size)
        return ops.squeeze(log_probs, 1), ops.squeeze(log_weights, 1), window

    def compute_output_shape(
        self, hidden_shape, words_shape, window_shape=None, targets_shape=None, **options
    ):
        batch, length = hidden_shape[:2]
        length = length if options.get("last") is None else options["last"]
        log_probs = (
            (batch, length) if targets_shape is not None else (batch, length, self.vocabulary_size)
        )
        return log_probs, {
            "states": (batch, self.window, hidden_shape[-1]),
            "words": (batch, self.window),
        }

    def get_config(self):
        return {**super().get_config(), "window": self.window}
