"""The section `model`."""

import dataclasses

from pipeline.recipes.choices import COMPOSITIONS, HEADS
from pipeline.recipes.fields import choice, number


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """The network. `head` is the copy mechanism; `softmax` copies nothing."""

    # The copy mechanism; `softmax` has none.
    head: str = choice(*HEADS, default="pointer_generator")
    # The network around the head: recurrent, a Transformer, or a pre-trained model of keras-hub,
    # which `preset` names (it needs the extra `hub`).
    body: str = choice("rnn", "transformer", "keras_hub", default="rnn")
    # Body keras_hub: a preset of T5, BART or RoBERTa, by its name in keras-hub ("t5_1.1_small") or
    # by its folder. Its sizes stand for those of this section. Set `data.units` to "preset".
    preset: str = ""
    # Body rnn: the cell of the decoder and of the rnn encoder.
    cell: str = choice("gru", "lstm", default="gru")
    # Body rnn: `segmenting` is described by the section segmentation.
    encoder: str = choice("rnn", "cnn", "segmenting", default="rnn")
    # The cnn encoder's width of convolution.
    kernel_size: int = number(3, low=1, high=31)
    # Body rnn: without attention the decoder sees the source only through its first state.
    attention: str = choice("additive", "dot", "bilinear", "none", default="additive")
    # Body rnn: the decoder reads the last attention vector.
    input_feeding: bool = True
    # Head joint_copy: the decoder reads the source states of the token just copied.
    selective_read: bool = False
    # Encoder rnn, above 0: embeddings and kernels are drawn uniformly from plus and minus this (0.1
    # suits hidden sizes around 512). With 0 kernels are Glorot's and embeddings from N(0, 1).
    initial_range: float = number(0.0, low=0.0, high=1.0)
    # Body rnn: how a step reads the source. `luong`: after its state is made, and the output is fed
    # back (`input_feeding`). `bahdanau`: before, by the state of the last step; the output is a
    # maxout of state, last word and what was read.
    decoder: str = choice("luong", "bahdanau", default="luong")
    # Stacked layers of the decoder; with body keras_hub, over an encoder alone such as RoBERTa.
    decoder_layers: int = number(1, low=1, high=24)
    # Body transformer: what each part adds starts smaller, by the square root of how many parts the
    # stack has. It makes deep stacks (6 layers and more) train steadily.
    depth_scaled: bool = False
    # Body transformer: each sub-layer normalises its inputs (pre-norm), or else what it leaves
    # (post-norm, as in Vaswani et al. 2017), which needs thousands of `training.warmup_steps`.
    norm_first: bool = True
    # Body transformer: heads of each multi-head attention.
    attention_heads: int = number(4, low=1, high=64)
    # Body transformer: hidden units of the feed-forward networks.
    feed_forward_size: int = number(1024, low=1)
    # Both bodies.
    embedding_size: int = number(256, low=1)
    # A file of vectors of source words, trained elsewhere, with which they start: word2vec's or
    # GloVe's text format, or, as NAME.bin, word2vec's binary format; or either as NAME.gz. Words
    # must be written as in the vocabulary. Their size is `embedding_size`.
    source_vectors: str = ""
    # The same for target words.
    target_vectors: str = ""
    # What shares its weights: `target`, the target's embeddings and the softmax; `all`, the
    # source's embeddings too, where `vocabulary.joint` makes one vocabulary. Where sizes differ, a
    # projection stands before the softmax.
    tie_embeddings: str = choice("none", "target", "all", default="none")
    # The size of the encoder's and the decoder's states.
    hidden_size: int = number(256, low=1)
    # Stacked layers of the encoder.
    encoder_layers: int = number(1, low=1, high=24)
    # The share of units that each training update drops.
    dropout: float = number(0.2, low=0.0, high=0.95)
    # Dropout of words' vectors; where it is left out, `dropout`.
    embedding_dropout: float | None = number(None, low=0.0, high=0.95)
    # The share of words, in source and target, whose whole vector is dropped;
    # `training.unknown_word_rate` feeds [UNK] instead.
    word_dropout: float = number(0.0, low=0.0, high=0.95)
    # Dropout of what the head reads; where it is left out, `dropout` with body rnn and 0 with body
    # transformer.
    output_dropout: float | None = number(None, low=0.0, high=0.95)
    # Body rnn: dropout of the state that a step of encoder rnn and decoder reads, with one mask for
    # all steps of a sequence (variational dropout).
    recurrent_dropout: float = number(0.0, low=0.0, high=0.95)
    # Body transformer: dropout of the weights of multi-head attention.
    attention_dropout: float = number(0.0, low=0.0, high=0.95)
    # Body transformer: dropout of the hidden units of the feed-forward networks.
    feed_forward_dropout: float = number(0.0, low=0.0, high=0.95)
    # Coverage enters the attention score and the loss; with body transformer only the loss.
    coverage: bool = True
    # Head pointer_softmax: above 1 its switch is sharper.
    inverse_temperature: float = number(1.0, low=1e-6)
    # Head pointer_softmax: the activation of the switch's hidden layers.
    switch_activation: str = choice("tanh", "noisy_tanh", "relu", default="tanh")
    # Head joint_copy: whether a position's score passes through tanh.
    copy_tanh: bool = True
    # Head span_copy: what predicts a span's end.
    copying_context: str = choice("expected", "start", default="expected")
    # Head span_copy: the longest and the shortest run of source tokens that is one copy. With a
    # min_span of 1 a single word may be copied too, even if the vocabulary has it. A word that the
    # vocabulary lacks may always be copied alone.
    max_span: int = number(5, low=1, high=32)
    # Head span_copy: the shortest run of source tokens that is one copy.
    min_span: int = number(1, low=1, high=32)
    # Head pointer_softmax: what points into the source. `unknown`: a word that the vocabulary lacks
    # points to itself. `dictionary`: else to one of its translations (data.dictionary), else to
    # where attention is highest. `entities`: a word of the source that `entity_feature` tags as an
    # entity, even if the vocabulary has it. Every tag but O, -, _ and 0 is one.
    pointers: str = choice("unknown", "dictionary", "entities", default="unknown")
    # One of data.source_features.
    entity_feature: str = ""
    # Head lexicon_bias: added to the probability of each word's translations.
    lexicon_epsilon: float = number(0.001, low=1e-9)
    # Head lexicon_linear: the lexicon's share is one number, or computed from the decoder's state.
    lexicon_gate: str = choice("constant", "state", default="constant")
    # A source word's vector is looked up in the vocabulary, composed of its characters, or the sum
    # of both (Arthur 2018, chapter 4). `ngram` composes it of runs of up to 4 characters, which are
    # hashed into `ngram_buckets`.
    composition: str = choice(*COMPOSITIONS, default="lookup")
    # Of a longer word the first and the last characters are read.
    word_length: int = number(16, low=1, high=128)
    # Composition `ngram`: the number of vectors that runs of characters are hashed to.
    ngram_buckets: int = number(50_021, low=1, high=2_000_000)
    # The size of the embedding of each of the source's features.
    feature_size: int = number(16, low=1)

    @property
    def segments(self) -> bool:
        """Whether the encoder finds words among characters."""
        return self.body == "rnn" and self.encoder == "segmenting"
