"""The weights of a Transformer without copying, laid out as CTranslate2 reads them.

CTranslate2's decoder has layers of self-attention, attention over the source with h heads, and a
feed-forward network. Ours has one attention more, behind its last layer (see `TransformerSeq2Seq`),
with a single head over all d units:

    a_t = softmax_j(s_t . W h_j / sqrt(d)),  o_t = Norm'(u_t + W_c sum_j a_tj h_j)

It becomes a further layer, whose self-attention and feed-forward network add nothing. Its first
head has d units, the query s_t, the keys W h_j, the values h_j and the output W_c; the other heads
are zero. CTranslate2 returns the attention of that first head, hence a_t.

Pre-norm, a part that adds nothing leaves its input as it is. Post-norm, it normalises it once more.
So the norm of the part before leaves out its gain and bias, and the last one applies them:

    Norm(x; gain, bias) = Norm(Norm(x; 1, 0); gain, bias)

up to the epsilon in the variance, which is 5e-6 of the result.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.common.errors import VerbatimError

#: Weights by the names that Keras gives them.
Weights = Mapping[str, NDArray[np.float32]]

# Added to the variance that a normalisation divides by: `keras_models.layers.transformer.EPSILON`,
# without the import of Keras.
EPSILON = 1e-5
# Units of what adds nothing. Matrix products on GPUs want multiples of 8.
_IDLE = 8


class WeightsError(VerbatimError, ValueError):
    """Weights that are not those of the network that a recipe describes; one sentence."""


@dataclasses.dataclass(frozen=True)
class Network:
    """What the shapes of weights do not tell.

    Attributes:
        attention_heads: heads of each multi-head attention.
        encoder_layers, decoder_layers: stacked layers.
        norm_first: whether each part normalises its inputs, or else what it leaves.
        positions: how many positions a text may have.
    """

    attention_heads: int
    encoder_layers: int
    decoder_layers: int
    norm_first: bool
    positions: int


def fill(network: Network, weights: Weights) -> Any:
    """Returns CTranslate2's specification of a network, with its weights and without vocabularies.

    Args:
        network: what the weights do not tell.
        weights: those of a `TransformerSeq2Seq` with the head `softmax`.

    Returns:
        A `ctranslate2.specs.TransformerSpec`.

    Raises:
        WeightsError: a weight is missing, or is of another network.
    """
    return _Filler(network, weights).fill()


def sinusoidal_positions(positions: int, size: int) -> NDArray[np.float32]:
    """Returns `[positions, size]`: `keras_models.layers.transformer.sinusoidal_positions`."""
    rates = np.exp(np.arange(0, size, 2, dtype=np.float32) * np.float32(-np.log(1e4) / size))
    angles = np.arange(positions, dtype=np.float32)[:, np.newaxis] * rates
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(positions, size)


class _Filler:
    """Fills a specification; says which weights nothing took."""

    def __init__(self, network: Network, weights: Weights) -> None:
        self.network = network
        self.weights = weights
        self.left = set(weights)
        self.size = self._take("output_norm/gamma").shape[0]

    def fill(self) -> Any:
        from ctranslate2 import specs

        network = self.network
        spec = specs.TransformerSpec.from_config(
            (network.encoder_layers, network.decoder_layers + 1),
            network.attention_heads,
            pre_norm=network.norm_first,
            activation=specs.Activation.RELU,
            alignment_layer=-1,
            alignment_heads=1,
        )
        spec.config.layer_norm_epsilon = EPSILON
        positions = sinusoidal_positions(network.positions, self.size)
        spec.encoder.position_encodings.encodings = positions
        spec.decoder.position_encodings.encodings = positions
        # CTranslate2 takes equal weights for one, so tied ones take their room once.
        tied = "source_embedding/embeddings" not in self.weights
        self._embed(
            "target" if tied else "source", "source", spec.encoder, spec.encoder.embeddings[0]
        )
        self._embed("target", "target", spec.decoder, spec.decoder.embeddings)
        for number, layer in enumerate(spec.encoder.layer):
            self._layer(f"encoder_{number}", layer)
        for number, layer in enumerate(spec.decoder.layer[:-1]):
            self._layer(f"decoder_{number}", layer, reads_source=True)
        self._last_layer(spec.decoder.layer[-1])
        if network.norm_first:
            self._norm("encoder_norm", spec.encoder.layer_norm)
            self._norm("output_norm", spec.decoder.layer_norm)
        else:
            self._post_norms(spec.decoder)
        self._words(spec.decoder.projection)
        if self.left:
            raise WeightsError(
                "The model has weights that no Transformer of its recipe has, such as "
                f"{min(self.left)}: export it again."
            )
        return spec

    def _take(self, name: str) -> NDArray[np.float32]:
        if name not in self.weights:
            raise WeightsError(f"The model has no weights named {name}: export it again.")
        self.left.discard(name)
        return np.asarray(self.weights[name], np.float32)

    def _kernel(self, name: str) -> NDArray[np.float32]:
        """Returns a kernel as CTranslate2 has it, `[outputs, inputs]`."""
        return np.ascontiguousarray(self._take(name).T)

    def _norm(self, name: str, norm: Any) -> None:
        norm.gamma, norm.beta = self._take(f"{name}/gamma"), self._take(f"{name}/beta")

    def _embed(self, words: str, side: str, stack: Any, embeddings: Any) -> None:
        """Sets the vectors of words, with what they are multiplied by before the first layer."""
        vectors = self._take(f"{words}_embedding/embeddings")
        if f"{side}_projection/kernel" in self.weights:
            vectors = vectors * np.float32(vectors.shape[1] ** 0.5)
            vectors = vectors @ self._take(f"{side}_projection/kernel")
            stack.scale_embeddings = False
        embeddings.weight = vectors

    def _layer(self, name: str, layer: Any, reads_source: bool = False) -> None:
        attention = layer.self_attention
        self._norm(f"{name}/self_norm", attention.layer_norm)
        parts = [self._kernel(f"{name}/self_attention/{part}_kernel") for part in _QUERY_KEY_VALUE]
        attention.linear[0].weight = np.concatenate(parts)
        attention.linear[1].weight = self._kernel(f"{name}/self_attention/output_kernel")
        if reads_source:
            self._norm(f"{name}/source_norm", layer.attention.layer_norm)
            query, *memory, output = (
                self._kernel(f"{name}/source_attention/{part}_kernel")
                for part in (*_QUERY_KEY_VALUE, "output")
            )
            for linear, kernel in zip(
                layer.attention.linear, (query, np.concatenate(memory), output)
            ):
                linear.weight = kernel
        self._norm(f"{name}/feed_forward_norm", layer.ffn.layer_norm)
        for linear, part in ((layer.ffn.linear_0, "inner"), (layer.ffn.linear_1, "outer")):
            linear.weight = self._kernel(f"{name}/{part}/kernel")
            linear.bias = self._take(f"{name}/{part}/bias")

    def _last_layer(self, layer: Any) -> None:
        """Makes the attention behind the last layer a layer of its own."""
        from ctranslate2.specs import attention_spec

        size, heads, feed_forward = self.size, self.network.attention_heads, layer.ffn
        self_attention = attention_spec.MultiHeadAttentionSpec(self_attention=True, head_dim=_IDLE)
        attention = attention_spec.MultiHeadAttentionSpec(head_dim=size)
        layer.self_attention, layer.attention = self_attention, attention
        self_attention.linear[0].weight = _zeros(3 * heads * _IDLE, size)
        self_attention.linear[1].weight = _zeros(size, heads * _IDLE)
        feed_forward.linear_0.weight = _zeros(_IDLE, size)
        feed_forward.linear_0.bias = _zeros(_IDLE)
        feed_forward.linear_1.weight = _zeros(size, _IDLE)
        feed_forward.linear_1.bias = _zeros(size)
        if self.network.norm_first:
            self._norm("query_norm", attention.layer_norm)
            for norm in (self_attention.layer_norm, feed_forward.layer_norm):
                norm.gamma, norm.beta = _ones(size), _zeros(size)

        queries, keys, values = (_zeros(heads * size, size) for _ in range(3))
        queries[:size] = values[:size] = np.eye(size, dtype=np.float32)
        keys[:size] = self._kernel("attention/memory_kernel")
        output = _zeros(size, heads * size)
        output[:, :size] = self._kernel("readout/kernel")
        attention.linear[0].weight = queries
        attention.linear[1].weight = np.concatenate([keys, values])
        attention.linear[2].weight = output

    def _post_norms(self, decoder: Any) -> None:
        """Sets the norms around the last attention, of which some come twice."""
        last = decoder.layer[-1]
        before, first = decoder.layer[-2].ffn.layer_norm, last.self_attention.layer_norm
        first.gamma, first.beta = before.gamma, before.beta
        before.gamma, before.beta = _ones(self.size), _zeros(self.size)
        middle = last.attention.layer_norm
        middle.gamma, middle.beta = _ones(self.size), _zeros(self.size)
        self._norm("output_norm", last.ffn.layer_norm)

    def _words(self, projection: Any) -> None:
        """Sets the softmax over words."""
        if "head/vocabulary/kernel" in self.weights:
            projection.weight = self._kernel("head/vocabulary/kernel")
        else:
            projection.weight = self._take("target_embedding/embeddings")
            if "head/vocabulary/projection" in self.weights:
                own = self._take("head/vocabulary/projection")
                projection.weight = np.ascontiguousarray(projection.weight @ own.T)
        projection.bias = self._take("head/vocabulary/bias")


_QUERY_KEY_VALUE = ("query", "key", "value")


def _zeros(*shape: int) -> NDArray[np.float32]:
    return np.zeros(shape, np.float32)


def _ones(*shape: int) -> NDArray[np.float32]:
    return np.ones(shape, np.float32)
