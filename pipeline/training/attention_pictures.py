"""Pictures for TensorBoard of the words that a model looks at while it is trained."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from keras_models import decoding
from pipeline.text import terms
from pipeline.training import heat_maps, training_data
from pipeline.training.drawn_pairs import draw_pairs

# Source tokens of the pairs that are shown.
_LENGTHS = (3, 20)


def read_shown(
    files: Sequence[str], names: Sequence[str]
) -> tuple[dict[str, tf.Tensor], list[list[str]]] | None:
    """Reads the first short pairs of a split, for `AttentionPictures`.

    Args:
        files: list of patterns of transformed files.
        names: features that the encoder and the search read.

    Returns:
        Dict of int32 `[pairs, length]`, and the tokens of each source, a list of lists of strings;
        None where no pair is short.
    """
    low, high = _LENGTHS

    def short(parsed: dict[str, tf.RaggedTensor]) -> NDArray[np.bool_]:
        lengths = parsed["source_ids"].row_lengths().numpy()
        fits: NDArray[np.bool_] = (lengths >= low) & (lengths <= high)
        return fits

    pairs = draw_pairs(files, names, heat_maps.SHOWN, short)
    if not pairs:
        return None
    inputs = {name: tf.ragged.stack([pair[name] for pair in pairs]).to_tensor() for name in names}
    return inputs, [
        [token.decode("utf-8") for token in pair[training_data.SURFACES].numpy()] for pair in pairs
    ]


class AttentionPictures(keras.callbacks.Callback):
    """Writes to TensorBoard after each epoch what the model looks at while it decodes.

    It decodes a few eval sources, greedily.

    Args:
        directory: TensorBoard's logs.
        inputs, sources: what `read_shown` returned.
        vocabulary: the target's words by id; without it tokens are shown as ids.
    """

    def __init__(
        self,
        directory: str,
        inputs: Mapping[str, tf.Tensor],
        sources: Sequence[Sequence[str]],
        vocabulary: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        self._writer = tf.summary.create_file_writer(directory)
        self._inputs = inputs
        self._sources = [list(map(terms.phrase_of, source)) for source in sources]
        self._vocabulary = vocabulary
        self._decode: Callable[[Mapping[str, tf.Tensor]], dict[str, tf.Tensor]] | None = None

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        if self._decode is None:
            # Traced once, at the first epoch's end.
            self._decode = tf.function(self._search, autograph=False)
        answers = {name: value.numpy() for name, value in self._decode(self._inputs).items()}
        with self._writer.as_default():
            for row, source in enumerate(self._sources):
                length = int(answers["lengths"][row, 0])
                heat_map: heat_maps.HeatMap = {
                    "source_tokens": list(source),
                    "tokens": [
                        self._token(number, source)
                        for number in answers["tokens"][row, 0, :length].tolist()
                    ],
                    "attention": answers["attention"][row, 0, :length, : len(source)],
                    "copy_probability": answers["copy_probability"][row, 0, :length],
                    "copied_from": answers["copied_from"][row, 0, :length],
                }
                heat_maps.write_summary(f"attention/{row + 1}", heat_map, step=epoch)

    def _search(self, inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        hypotheses = decoding.decode(
            self.model,
            inputs,
            max_length=2 * _LENGTHS[1],
            beam_size=1,
            n_best=1,
            return_attention=True,
        )
        return {name: value for name, value in hypotheses._asdict().items() if value is not None}

    def _token(self, number: int, source: Sequence[str]) -> str:
        size = self.model.target_vocabulary_size
        if number >= size:
            return source[number - size]
        return self._vocabulary[number] if self._vocabulary else str(number)
