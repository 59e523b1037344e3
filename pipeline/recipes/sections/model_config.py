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
    # by its folder. Its sizes replace those of this section. Set `data.units` to "preset".
    preset: str = ""
    # Body rnn: the cell of the decoder and of the rnn encoder.
    cell: str = choice("gru", "lstm", default="gru")
    # Body rnn: the kind of encoder. The section segmentation describes `segmenting`.
    encoder: str = choice("rnn", "cnn", "segmenting", default="rnn")
    # The convolution width of the cnn encoder.
    kernel_size: int = number(3, low=1, high=31)
    # Body rnn: the attention of the decoder. With `none`, the decoder sees the source only through
    # its own first state.
    attention: str = choice("additive", "dot", "bilinear", "none", default="additive")
    # Body rnn: the decoder reads the last attention vector.
    input_feeding: bool = True
    # Head joint_copy: the decoder reads the source states of the token just copied.
    selective_read: bool = False
    # Encoder rnn: above 0, embeddings and kernels start with uniform values between minus and plus
    # this (0.1 suits hidden sizes around 512). With 0, kernels start as Glorot's and embeddings
    # from N(0, 1).
    initial_range: float = number(0.0, low=0.0, high=1.0)
    # Body rnn: when a step of the decoder reads the source. `luong`: after its state is computed;
    # the output is fed back (`input_feeding`). `bahdanau`: before that, by the state of the
    # previous step; the output is a maxout of state, previous word and what was read.
    decoder: str = choice("luong", "bahdanau", default="luong")
    # The number of stacked layers of the decoder. With body keras_hub, it counts only if the preset
    # is an encoder alone, such as RoBERTa.
    decoder_layers: int = number(1, low=1, high=24)
    # Body transformer: at the start, what each part of the stack adds is divided by the square root
    # of the number of parts. Deep stacks (6 layers and more) then train steadily.
    depth_scaled: bool = False
    # Body transformer: each sub-layer normalises its inputs (pre-norm). If false, it normalises its
    # outputs (post-norm, as in Vaswani et al. 2017), which needs thousands of
    # `training.warmup_steps`.
    norm_first: bool = True
    # Body transformer: the number of heads of each multi-head attention.
    attention_heads: int = number(4, low=1, high=64)
    # Body transformer: the number of hidden units of the feed-forward networks.
    feed_forward_size: int = number(1024, low=1)
    # Bodies rnn and transformer: the size of word vectors.
    embedding_size: int = number(256, low=1)
    # A file of pre-trained vectors, with which source words start: in word2vec's or GloVe's text
    # format, or, as NAME.bin, in word2vec's binary format; or either as NAME.gz. Words must be
    # written as in the vocabulary. The vectors must have `embedding_size` numbers.
    source_vectors: str = ""
    # The same for target words.
    target_vectors: str = ""
    # What shares its weights. `target`: the target's embeddings and the softmax. `all`: the
    # source's embeddings too, if `vocabulary.joint` makes one vocabulary. Where sizes differ, a
    # projection stands before the softmax.
    tie_embeddings: str = choice("none", "target", "all", default="none")
    # The size of the encoder's and the decoder's states.
    hidden_size: int = number(256, low=1)
    # The number of stacked layers of the encoder.
    encoder_layers: int = number(1, low=1, high=24)
    # The share of units that each training update drops.
    dropout: float = number(0.2, low=0.0, high=0.95)
    # Dropout of word vectors. Its default is the value of `dropout`.
    embedding_dropout: float | None = number(None, low=0.0, high=0.95)
    # The share of words, in source and target, whose whole vector is dropped;
    # `training.unknown_word_rate` feeds [UNK] instead.
    word_dropout: float = number(0.0, low=0.0, high=0.95)
    # Dropout of what the head reads. Its default is the value of `dropout` with body rnn, and 0
    # with body transformer.
    output_dropout: float | None = number(None, low=0.0, high=0.95)
    # Body rnn: dropout of the state that each step of the rnn encoder and of the decoder reads. All
    # steps of a sequence have the same mask (variational dropout).
    recurrent_dropout: float = number(0.0, low=0.0, high=0.95)
    # Body transformer: dropout of the weights of multi-head attention.
    attention_dropout: float = number(0.0, low=0.0, high=0.95)
    # Body transformer: dropout of the hidden units of the feed-forward networks.
    feed_forward_dropout: float = number(0.0, low=0.0, high=0.95)
    # Coverage, the attention that each source token has received so far, enters the attention score
    # and the loss; with body transformer, only the loss.
    coverage: bool = True
    # Head pointer_softmax: above 1 its switch is sharper.
    inverse_temperature: float = number(1.0, low=1e-6)
    # Head pointer_softmax: the activation of the switch's hidden layers.
    switch_activation: str = choice("tanh", "noisy_tanh", "relu", default="tanh")
    # Head joint_copy: whether a position's score passes through tanh.
    copy_tanh: bool = True
    # Head span_copy: what predicts a span's end.
    copying_context: str = choice("expected", "start", default="expected")
    # Head span_copy: the longest run of source tokens that one copy writes.
    max_span: int = number(5, low=1, high=32)
    # Head span_copy: the shortest run of source tokens that one copy writes. With 1, a single word
    # may be copied even if the vocabulary has it. A word that the vocabulary lacks may always be
    # copied alone.
    min_span: int = number(1, low=1, high=32)
    # Head pointer_softmax: which words point into the source. `unknown`: a word that the vocabulary
    # lacks points to the same word in the source. `dictionary`: if the source does not have such a
    # word, it points to one of its translations (data.dictionary), else to where attention is
    # highest. `entities`: a word points to the same word in the source if `entity_feature` tags
    # that as an entity, even if the vocabulary has the word. Every tag except O, -, _ and 0 marks
    # an entity.
    pointers: str = choice("unknown", "dictionary", "entities", default="unknown")
    # The feature that marks entities for `pointers`: one of data.source_features.
    entity_feature: str = ""
    # Head lexicon_bias: a small number that is added to the lexicon's probability of each word.
    lexicon_epsilon: float = number(0.001, low=1e-9)
    # Head lexicon_linear: the lexicon's share is one learned number (`constant`), or is computed
    # from the decoder's state (`state`).
    lexicon_gate: str = choice("constant", "state", default="constant")
    # A source word's vector is looked up in the vocabulary, is composed of the word's characters,
    # or is the sum of both (Arthur 2018, chapter 4). `ngram` composes it of runs of up to 4
    # characters, which are hashed into `ngram_buckets`.
    composition: str = choice(*COMPOSITIONS, default="lookup")
    # The most characters of a word that a composition reads. Of a longer word it reads the first
    # and the last characters.
    word_length: int = number(16, low=1, high=128)
    # Composition `ngram`: the number of vectors that runs of characters are hashed to.
    ngram_buckets: int = number(50_021, low=1, high=2_000_000)
    # The size of the embedding of each of the source's features.
    feature_size: int = number(16, low=1)

    @property
    def segments(self) -> bool:
        """Whether the encoder finds words among characters."""
        return self.body == "rnn" and self.encoder == "segmenting"
