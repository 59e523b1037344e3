"""Encoder-decoder body with a recurrent decoder."""

import math

import keras
from keras import ops

from keras_models import losses
from keras_models.layers.numerics import repeat_rows
from keras_models.models.dropouts import check_rate
from keras_models.models.recurrent_encoder import CELLS, RecurrentEncoder
from keras_models.models.seq2seq import BODY_OPTIONS


@keras.saving.register_keras_serializable("verbatim")
class RecurrentSeq2Seq(RecurrentEncoder):
    """Recurrent, convolutional or segmenting encoder, attentive decoder, copy head.

    In formulas, o_{t-1} being fed back (Luong et al. 2015, section 3.3):

        h = BiRNN(E_s x),  s_0 = tanh(W [h_forward_last; h_backward_first] + b)
        s_t = RNN([E_t y_{t-1}; o_{t-1}], s_{t-1})
        context_t, a_t = attention(s_t, h, coverage_t)
        o_t = tanh(W_o [s_t; context_t])

    Decoder `"bahdanau"` reads the source before each step, by the state before (Bahdanau et al.
    2015, appendix A.2.2):

        context_t, a_t = attention(s_{t-1}, h, coverage_t)
        s_t = RNN([E_t y_{t-1}; context_t], s_{t-1})
        o_t = maxout(U_o s_t + V_o E_t y_{t-1} + C_o context_t)       over pairs of units

    The appendix prints s_{i-1} in o_i; equation 4, p(y_i) = g(y_{i-1}, s_i, c_i), has s_i, as here.

    The head turns (o_t, context_t, s_t, a_t) into a distribution over the extended vocabulary.
    Encoder `"cnn"` is `ConvolutionalEncoder`; without last states, s_0 is made of the mean of h
    over the source's tokens. Encoder `"segmenting"` reads characters and finds words
    (`SegmentingEncoder`, trained by `SegmentationPolicy`); a word's h stands at its last character.

    Args:
        source_vocabulary_size: number of source ids.
        target_vocabulary_size: V.
        head: name of the head, see `keras_models.heads.registry`.
        cell: `"gru"` or `"lstm"`.
        attention: `"additive"`, `"dot"`, `"bilinear"`, or `"none"`: the decoder then sees the
            source only through its first state.
        embedding_size, hidden_size: sizes; `hidden_size` is even for encoder `"rnn"`.
        encoder: `"rnn"`, bidirectional layers of `cell`, `"cnn"`, gated convolutions, or
            `"segmenting"`, which fits head `softmax`.
        segmentation: dict of arguments of `SegmentationPolicy`, and of those of `SegmentingEncoder`
            all but units and dropout, for that encoder; or None.
        encoder_layers: stacked layers of the encoder.
        decoder_layers: stacked layers of the decoder. s_t is then the top one's output; what is fed
            back enters the first; from the third on, a layer adds its input to its output.
        decoder: `"luong"` or `"bahdanau"`.
        kernel_size: width of the convolutions, odd.
        dropout: share of units dropped on embeddings, source states and decoder outputs.
        recurrent_dropout: share of units dropped of the last step's state, where decoder and
            encoder `"rnn"` multiply it by a kernel: one mask for all steps of a sequence (Gal and
            Ghahramani 2016). What is carried on stays whole.
        initial_range: r, above 0: embeddings and kernels are first drawn uniformly from [-r, r], as
            Sutskever et al. 2014 (section 3.4, r = 0.08) and Luong et al. 2015 (section 4.1, r =
            0.1) do; biases, and weights with a first value of their own, keep it. 0: kernels are
            Glorot's, embeddings drawn from N(0, 1). For encoder `"rnn"`.
        input_feeding: whether o_{t-1} is an input of step t; of decoder `"luong"`.
        coverage: whether coverage enters the attention score and `coverage_loss_weight` applies.
        coverage_loss_weight: weight of `losses.coverage_loss`, added to the training loss.
        selective_read: whether the source states of the token just copied are an input of the next
            step (Gu et al. 2016, eq. 9), weighted by the head's copy scores of that step; for head
            `joint_copy`.
        head_options, large_vocabulary_size, large_vocabulary_drawn, source_features, feature_size,
            scheduled_sampling, lexicon_shape, composition, composition_options, tie_embeddings,
            label_smoothing, embedding_dropout, word_dropout, output_dropout,
            guided_alignment_weight, consistency_weight: see `Seq2Seq`.

    Raises:
        ValueError: sizes or options that do not fit together.

    Call arguments:
        inputs: dict with int `[batch, source_length]` `source_ids` and `source_extended_ids`, int
            `[batch, target_length]` `target_input_ids` and `target_extended_ids`, the label
            features that the head reads and the source features. Id 0 is padding.

    Returns:
        float32 `[batch, target_length]`, the log-probability of each label; train with
        `losses.negative_log_likelihood`.

    Example:

    >>> import numpy as np
    >>> from keras_models.models import RecurrentSeq2Seq
    >>> model = RecurrentSeq2Seq(
    ...     source_vocabulary_size=20, target_vocabulary_size=10, hidden_size=8, embedding_size=4)
    >>> log_probs = model({
    ...     "source_ids": np.array([[4, 5, 6]]),
    ...     "source_extended_ids": np.array([[10, 11, 12]]),
    ...     "target_input_ids": np.array([[2, 7]]),
    ...     "target_extended_ids": np.array([[7, 3]]),
    ... })
    >>> tuple(log_probs.shape)
    (1, 2)
    """

    def __init__(
        self,
        source_vocabulary_size,
        target_vocabulary_size,
        head="pointer_generator",
        cell="gru",
        attention="additive",
        embedding_size=256,
        hidden_size=256,
        encoder="rnn",
        encoder_layers=1,
        kernel_size=3,
        dropout=0.2,
        input_feeding=True,
        coverage=True,
        coverage_loss_weight=1.0,
        selective_read=False,
        segmentation=None,
        initial_range=0.0,
        recurrent_dropout=0.0,
        decoder_layers=1,
        decoder="luong",
        **kwargs,
    ):
        # Composed words are scaled to the same variance, because the composer's weights are not
        # drawn again.
        stddev = initial_range / math.sqrt(3) if initial_range else 1.0
        super().__init__(
            source_vocabulary_size, target_vocabulary_size, head, embedding_stddev=stddev, **kwargs
        )
        self._config = dict(
            source_vocabulary_size=source_vocabulary_size,
            target_vocabulary_size=target_vocabulary_size,
            head=head,
            cell=cell,
            attention=attention,
            embedding_size=embedding_size,
            hidden_size=hidden_size,
            encoder=encoder,
            encoder_layers=encoder_layers,
            kernel_size=kernel_size,
            dropout=dropout,
            input_feeding=input_feeding,
            coverage=coverage,
            coverage_loss_weight=coverage_loss_weight,
            selective_read=selective_read,
            segmentation=segmentation,
            initial_range=initial_range,
            recurrent_dropout=recurrent_dropout,
            decoder_layers=decoder_layers,
            decoder=decoder,
            **{name: kwargs[name] for name in BODY_OPTIONS if name in kwargs},
        )
        if cell not in CELLS:
            raise ValueError(f"cell must be one of {', '.join(CELLS)}; got {cell!r}.")
        if encoder not in ("rnn", "cnn", "segmenting"):
            raise ValueError(f"encoder must be one of rnn, cnn, segmenting; got {encoder!r}.")
        if encoder == "segmenting" and (head != "softmax" or attention == "none"):
            raise ValueError(
                "encoder 'segmenting' needs head 'softmax' and an attention: what is copied would "
                "be single characters."
            )
        if encoder != "cnn" and hidden_size % 2:
            raise ValueError(
                f"hidden_size must be even, one half for each direction; got {hidden_size}."
            )
        if initial_range < 0 or (initial_range and encoder != "rnn"):
            raise ValueError(
                f"initial_range must be at least 0, and 0 for encoder {encoder!r}, whose layers "
                f"are drawn by sizes of their own; got {initial_range}."
            )
        if attention == "none" and self.head.needs_attention:
            raise ValueError(
                f"The head {head!r} copies by attention; it needs an attention other than 'none'."
            )
        if self.guided_alignment_weight and (
            encoder == "segmenting" or (attention == "none" and not self.head.scores_copies)
        ):
            raise ValueError(
                "guided_alignment_weight needs an attention over tokens, or a head that scores "
                f"copies itself; got encoder {encoder!r}, attention {attention!r}, head {head!r}."
            )
        if self.consistency_weight and encoder == "segmenting":
            raise ValueError(
                "consistency_weight does not go with encoder 'segmenting': each pass would cut the "
                "source in another way."
            )
        if selective_read and not hasattr(self.head, "copy_scores"):
            raise ValueError(
                f"selective_read needs a head with copy scores, 'joint_copy'; got {head!r}."
            )
        self.hidden_size = hidden_size
        self.coverage_loss_weight = coverage_loss_weight

        # Drawn from [-r, r] later, they suit a softmax as they are.
        tied_scale = 1.0 if initial_range else math.sqrt(embedding_size)
        self.make_word_vectors(
            source_vocabulary_size, target_vocabulary_size, embedding_size, tied_scale=tied_scale
        )
        self.recurrent_dropout = recurrent_dropout
        check_rate("recurrent_dropout", recurrent_dropout)
        self.make_encoder(encoder, cell, encoder_layers, kernel_size, dropout, segmentation)
        self.make_decoder(
            hidden_size,
            cell,
            attention,
            coverage,
            input_feeding,
            selective_read,
            decoder_layers,
            decoder,
        )
        self.make_dropouts(dropout, output_dropout=dropout)
        sizes = (None, None, embedding_size + self.features_size)
        for index, layer in enumerate(self.encoder):
            layer.build(sizes if index == 0 else (None, None, hidden_size))
        self.build_decoder(embedding_size, hidden_size)
        self.build_head(hidden_size, hidden_size, embedding_size, hidden_size)
        if initial_range:
            self._draw_weights(initial_range)

    def _draw_weights(self, initial_range):
        """Draws embeddings and kernels anew, uniformly from [-initial_range, initial_range]."""
        composed = [] if self.composer is None else self.composer.trainable_variables
        kept = {id(variable) for variable in composed}
        for variable in self.trainable_variables:
            # A GRU's bias has two axes, too.
            if len(variable.shape) < 2 or variable.name == "bias" or id(variable) in kept:
                continue
            # One per variable: an initializer always draws the same numbers.
            draw = keras.initializers.RandomUniform(-initial_range, initial_range)
            variable.assign(draw(variable.shape, dtype=variable.dtype))

    def get_config(self):
        return {**super().get_config(), **self._config}

    def call(self, inputs, training=False):
        inputs = self.in_passes(inputs, training)
        samples = self.policy.samples if training and self.policy is not None else 1
        memory, carry = self.encode(inputs, training=training, samples=samples)
        inputs = repeat_rows(inputs, samples)
        segmented = memory.pop("segmented", None)
        embedded = self.drop_words(self.embed_target(inputs["target_input_ids"]), training)
        embedded = self.drop_embedded(embedded, training)
        if training and self.scheduled_sampling:
            steps = self.scan_sampled(inputs, memory, carry)
        else:
            steps = self.scan_gold(inputs, embedded, memory, carry, training)
        steps = keras.tree.map_structure(lambda x: ops.transpose(x, (1, 0, 2)), steps)
        targets = ops.cast(inputs["target_extended_ids"], "int32")
        if self.coverage and self.coverage_loss_weight:
            attention = ops.exp(steps["attention_log_weights"])
            penalty = losses.coverage_loss(
                attention, steps["coverage"] - attention, ops.not_equal(targets, 0)
            )
            self.add_loss(self.coverage_loss_weight * penalty)
        state = {
            "hidden": self.drop_outputs(steps["hidden"], training),
            "context": steps["context"],
            "decoder_state": self._decoder_output(steps),
            "inputs": steps.get("inputs", embedded),
            "attention_log_weights": steps["attention_log_weights"],
        }
        log_prob = self.score_targets(state, memory, inputs, training)
        if segmented is None:
            return log_prob
        attention = ops.exp(steps["attention_log_weights"])
        source_ids = ops.cast(inputs["source_ids"], "int32")
        reward = log_prob
        if self.label_smoothing:
            # A segmentation's worth is the likelihood itself.
            reward = self.score_targets(state, memory, inputs, training, smooths=False)
        arguments = (source_ids, segmented["mask"], reward, ops.not_equal(targets, 0), attention)
        self.add_loss(self.policy.loss(segmented, *arguments))
        return ops.mean(
            ops.reshape(self.policy.share(log_prob), (-1, samples, ops.shape(log_prob)[1])), axis=1
        )
