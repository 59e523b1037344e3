"""Which words a model looks at while it is trained and measured:
pointers of language models, and pictures for TensorBoard.
"""

import keras
import numpy as np
import tensorflow as tf

from keras_models import decoding
from pipeline.training import training_data

SHOWN = 4
_LENGTHS = (3, 20)  # source tokens of the pairs that are shown

_CELL = 12  # pixels
_WHITE, _BLUE, _ORANGE, _GRAY = (
    np.array(color, float) for color in ((255,) * 3, (10, 84, 148), (163, 75, 0), (217,) * 3)
)


def picture(attention, copy_probability, copied_from):
    """Draws attention as the report does:
    darker is more, a last column for copying, the copied cells outlined.

    Args:
        attention: `[T, S]`, weights of T output tokens over S source tokens.
        copy_probability: `[T]`.
        copied_from: int `[T]`, source positions, -1 for generated tokens.

    Returns:
        uint8 `[12 T, 12 (S + 2), 3]`, red, green, blue.
    """
    attention = np.clip(np.nan_to_num(np.asarray(attention, float)), 0, 1)[..., None]
    copying = np.clip(np.nan_to_num(np.asarray(copy_probability, float)), 0, 1)[:, None, None]
    cells = np.concatenate(
        [
            _WHITE + attention * (_BLUE - _WHITE),
            np.broadcast_to(_GRAY, (len(attention), 1, 3)),
            _WHITE + copying * (_ORANGE - _WHITE),
        ],
        axis=1,
    )
    drawn = np.kron(cells, np.ones((_CELL, _CELL, 1)))
    for row, column in enumerate(np.asarray(copied_from).tolist()):
        if 0 <= column < attention.shape[1]:
            top, left = row * _CELL, column * _CELL
            inside = drawn[top + 2 : top + _CELL - 2, left + 2 : left + _CELL - 2].copy()
            drawn[top : top + _CELL, left : left + _CELL] = _ORANGE
            drawn[top + 2 : top + _CELL - 2, left + 2 : left + _CELL - 2] = inside
    return drawn.round().astype("uint8")


def pointer_map(model, ids, words, end, rows=8, most_columns=24):
    """Where a pointer sentinel looked before it predicted some words (figures A2 to A9 of Merity et
    al. 2016).

    Args:
        model: a `LanguageModel` with a pointer.
        ids: int `[words]`, a stream.
        words: its words, a list of strings.
        end: the last predicted word's place.
        rows: how many words are predicted; a window and as many words again are read before.
        most_columns: the words that are shown of those pointed at: the ones with the largest
            weight.

    Returns:
        Dict as the report's heat maps: `tokens` (the predicted words), `source_tokens` (words
        pointed at), `attention`, `copied_from` (-1 where the pointer gave the word less than half
        of its probability), and as `copy_probability` the pointer's share, 1 - g.
    """
    window = model.window
    begin = max(1, end + 1 - rows)
    first = max(0, begin - 2 * window)
    # The words that are fed: the one before each predicted word.
    fed = np.asarray(ids[first:end], "int32")
    known = begin - 1 - first
    carry = model(fed[None, :known])[1] if known else model.initial_carry(1)
    weights = np.zeros((end + 1 - begin, len(fed)))
    shares, given = [], []
    for row, place in enumerate(range(known, len(fed))):
        log_probs, copy_log_probs, carry = model.step(fed[None, place], carry)
        seen = np.exp(np.asarray(copy_log_probs, "float64")[0])[-(place + 1) :]
        weights[row, place + 1 - len(seen) : place + 1] = seen
        shares.append(float(seen.sum()))
        given.append(float(np.exp(np.asarray(log_probs, "float64")[0, int(ids[begin + row])])))
    copies = [
        np.where(fed == int(ids[begin + row]), weights[row], 0.0) for row in range(len(weights))
    ]
    sources = [int(one.argmax()) if 2 * one.sum() >= p > 0 else -1 for one, p in zip(copies, given)]
    # What is copied is shown first, then what is looked at most.
    importance = weights.max(axis=0) + np.isin(np.arange(len(fed)), sources)
    columns = np.sort(np.argsort(-importance, kind="stable")[:most_columns])
    place_of = {int(column): number for number, column in enumerate(columns)}
    return {
        "source_tokens": [words[first + int(column)] for column in columns],
        "tokens": list(words[begin : end + 1]),
        "attention": weights[:, columns].round(4).tolist(),
        "copy_probability": [round(share, 4) for share in shares],
        "copied_from": [place_of.get(source, -1) for source in sources],
    }


def write_summary(name, heat_map, step):
    """Writes a heat map, as `pointer_map` makes it, to TensorBoard's current writer:
    the picture, and its tokens as text.
    """
    if not heat_map["tokens"]:
        return
    drawn = picture(*(heat_map[key] for key in ("attention", "copy_probability", "copied_from")))
    tf.summary.image(name, drawn[np.newaxis], step=step)
    rows, columns = (" ".join(heat_map[key]) for key in ("tokens", "source_tokens"))
    # Indented, so that Markdown takes nothing in it for its own.
    said = (
        f"Rows, from the top:\n\n    {rows}\n\nColumns, from the left; the last one is what "
        f"was copied:\n\n    {columns}\n"
    )
    tf.summary.text(f"{name}/tokens", said, step=step)


def read_shown(files, names):
    """Reads the first short pairs of a split, for `AttentionPictures`.

    Args:
        files: list of patterns of transformed files.
        names: features that the encoder and the search read.

    Returns:
        Dict of int32 `[pairs, length]`, and the tokens of each source, a list of lists of strings;
        None where no pair is short.
    """
    low, high = _LENGTHS
    pairs = training_data.read_examples(files, (*names, training_data.SURFACES))
    pairs = pairs.filter(
        lambda pair: (tf.size(pair["source_ids"]) >= low) & (tf.size(pair["source_ids"]) <= high)
    )
    chosen = list(pairs.take(SHOWN))
    if not chosen:
        return None
    inputs = {name: tf.ragged.stack([pair[name] for pair in chosen]).to_tensor() for name in names}
    return inputs, [
        [token.decode("utf-8") for token in pair[training_data.SURFACES].numpy()] for pair in chosen
    ]


class AttentionPictures(keras.callbacks.Callback):
    """Writes to TensorBoard after each epoch what the model looks at while it decodes a few eval
    sources, greedily.

    Args:
        directory: TensorBoard's logs.
        inputs, sources: what `read_shown` returned.
        vocabulary: the target's words by id; without it tokens are shown as ids.
    """

    def __init__(self, directory, inputs, sources, vocabulary=None):
        super().__init__()
        self._writer = tf.summary.create_file_writer(directory)
        self._inputs = inputs
        self._sources = sources
        self._vocabulary = vocabulary
        self._decode = None

    def on_epoch_end(self, epoch, logs=None):
        if self._decode is None:
            # Traced once, at the first epoch's end.
            self._decode = tf.function(self._search, autograph=False)
        found = {name: value.numpy() for name, value in self._decode(self._inputs).items()}
        with self._writer.as_default():
            for row, source in enumerate(self._sources):
                length = int(found["lengths"][row, 0])
                heat_map = {
                    name: found[name][row, 0, :length]
                    for name in ("copy_probability", "copied_from")
                }
                heat_map["attention"] = found["attention"][row, 0, :length, : len(source)]
                heat_map["tokens"] = [
                    self._token(number, source)
                    for number in found["tokens"][row, 0, :length].tolist()
                ]
                write_summary(
                    f"attention/{row + 1}", {**heat_map, "source_tokens": source}, step=epoch
                )

    def _search(self, inputs):
        options = {
            "max_length": 2 * _LENGTHS[1],
            "beam_size": 1,
            "n_best": 1,
            "return_attention": True,
        }
        found = decoding.decode(self.model, inputs, **options)
        return {name: value for name, value in found._asdict().items() if value is not None}

    def _token(self, number, source):
        size = self.model.target_vocabulary_size
        if number >= size:
            return source[number - size]
        return self._vocabulary[number] if self._vocabulary else str(number)
