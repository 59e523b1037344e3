"""Heat maps of the words that a model looks at, and their pictures for TensorBoard."""

from collections.abc import Sequence
from typing import TypedDict

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike, NDArray

# How many heat maps TensorBoard shows.
SHOWN = 4
# Pixels.
_CELL = 12
_WHITE, _BLUE, _ORANGE, _GRAY = (
    np.array(color, float) for color in ((255,) * 3, (10, 84, 148), (163, 75, 0), (217,) * 3)
)


class HeatMap(TypedDict):
    """Attention of T output tokens over S source tokens, as the report shows it.

    Attributes:
        source_tokens, tokens: S and T strings.
        attention: `[T, S]`.
        copy_probability: `[T]`.
        copied_from: `[T]`, source positions, -1 for generated tokens.
    """

    source_tokens: list[str]
    tokens: list[str]
    attention: list[list[float]]
    copy_probability: list[float]
    copied_from: list[int]


def picture(
    attention: ArrayLike, copy_probability: ArrayLike, copied_from: ArrayLike
) -> NDArray[np.uint8]:
    """Draws attention as the report does.

    Darker is more; a last column is for copying; the copied cells are outlined.

    Args:
        attention: `[T, S]`, weights of T output tokens over S source tokens.
        copy_probability: `[T]`.
        copied_from: int `[T]`, source positions, -1 for generated tokens.

    Returns:
        uint8 `[12 T, 12 (S + 2), 3]`, red, green, blue.
    """
    weights = np.clip(np.nan_to_num(np.asarray(attention, float)), 0, 1)[..., None]
    copying = np.clip(np.nan_to_num(np.asarray(copy_probability, float)), 0, 1)[:, None, None]
    cells = np.concatenate(
        [
            _WHITE + weights * (_BLUE - _WHITE),
            np.broadcast_to(_GRAY, (len(weights), 1, 3)),
            _WHITE + copying * (_ORANGE - _WHITE),
        ],
        axis=1,
    )
    drawn = np.kron(cells, np.ones((_CELL, _CELL, 1)))
    for row, column in enumerate(np.asarray(copied_from).tolist()):
        if 0 <= column < weights.shape[1]:
            top, left = row * _CELL, column * _CELL
            inside = drawn[top + 2 : top + _CELL - 2, left + 2 : left + _CELL - 2].copy()
            drawn[top : top + _CELL, left : left + _CELL] = _ORANGE
            drawn[top + 2 : top + _CELL - 2, left + 2 : left + _CELL - 2] = inside
    return drawn.round().astype("uint8")


def pointer_map(
    model: keras.Model,
    ids: NDArray[np.int32],
    words: Sequence[str],
    end: int,
    rows: int = 8,
    most_columns: int = 24,
) -> HeatMap:
    """Returns where a pointer sentinel looked before it predicted some words.

    After figures A2 to A9 of Merity et al. 2016.

    Args:
        model: a `LanguageModel` with a pointer.
        ids: int `[words]`, a stream.
        words: its words, a list of strings.
        end: the last predicted word's place.
        rows: how many words are predicted; a window and as many words again are read before.
        most_columns: the words that are shown of those pointed at: the ones with the largest
            weight.

    Returns:
        A heat map: `tokens` are the predicted words, `source_tokens` the words pointed at,
        `copied_from` is -1 where the pointer gave the word less than half of its probability, and
        `copy_probability` is the pointer's share, 1 - g.
    """
    window = model.window
    begin = max(1, end + 1 - rows)
    first = max(0, begin - 2 * window)
    # The words that are fed: the one before each predicted word.
    fed = np.asarray(ids[first:end], "int32")
    known = begin - 1 - first
    carry = model(fed[None, :known])[1] if known else model.initial_carry(1)
    weights = np.zeros((end + 1 - begin, len(fed)))
    shares, probabilities = [], []
    for row, place in enumerate(range(known, len(fed))):
        log_probs, copy_log_probs, carry = model.step(fed[None, place], carry)
        seen = np.exp(np.asarray(copy_log_probs, "float64")[0])[-(place + 1) :]
        weights[row, place + 1 - len(seen) : place + 1] = seen
        shares.append(float(seen.sum()))
        probabilities.append(
            float(np.exp(np.asarray(log_probs, "float64")[0, int(ids[begin + row])]))
        )
    copies = [
        np.where(fed == int(ids[begin + row]), weights[row], 0.0) for row in range(len(weights))
    ]
    sources = [
        int(one.argmax()) if 2 * one.sum() >= p > 0 else -1 for one, p in zip(copies, probabilities)
    ]
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


def write_summary(name: str, heat_map: HeatMap, step: int) -> None:
    """Writes a heat map to TensorBoard's current writer: the picture, and its tokens as text."""
    if not heat_map["tokens"]:
        return
    drawn = picture(heat_map["attention"], heat_map["copy_probability"], heat_map["copied_from"])
    tf.summary.image(name, drawn[np.newaxis], step=step)
    rows, columns = " ".join(heat_map["tokens"]), " ".join(heat_map["source_tokens"])
    # Indented, so that Markdown takes nothing in it for its own.
    legend = (
        f"Rows, from the top:\n\n    {rows}\n\nColumns, from the left; the last one is what "
        f"was copied:\n\n    {columns}\n"
    )
    tf.summary.text(f"{name}/tokens", legend, step=step)
