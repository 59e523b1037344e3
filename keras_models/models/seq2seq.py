"""Base of the encoder-decoder bodies: memory, labels, what is fed back."""

import keras
import numpy as np
from keras import ops

from keras_models.decoding.constraints import UNKNOWN_ID
from keras_models.heads.registry import make_head
from keras_models.layers import panels
from keras_models.layers.gathering import take_along
from keras_models.layers.numerics import first_places
from keras_models.layers.shortlist import find
from keras_models.models.body_arguments import checked
from keras_models.models.target_scoring import TargetScoring

# Arguments of every body, which its config keeps.
BODY_OPTIONS = (
    "head_options",
    "large_vocabulary_size",
    "large_vocabulary_drawn",
    "source_features",
    "feature_size",
    "scheduled_sampling",
    "lexicon_shape",
    "composition",
    "composition_options",
    "tie_embeddings",
    "label_smoothing",
    "embedding_dropout",
    "word_dropout",
    "output_dropout",
    "guided_alignment_weight",
    "consistency_weight",
)


class Seq2Seq(TargetScoring):
    """Base of the bodies.

    A body encodes a source, runs a decoder over it, and leaves the distribution to its head.

    A body defines `encode`, `step` and `call`, and ends its constructor with `build_head`.
    `decoding_samples` says how many rows `encode` makes of a source in decoding, whose outputs
    compete: more than one where an encoder has a choice.

    Args:
        source_vocabulary_size: number of source ids.
        target_vocabulary_size: V.
        head: name of the head, see `keras_models.heads.registry`.
        head_options: dict of the head's own arguments, or None.
        large_vocabulary_size: in training the softmax runs over this many words, those of the batch
            and the most frequent (`keras_models.layers.vocabulary`); 0 for all.
        large_vocabulary_drawn: how many further words are drawn to stand for the others; 0 leaves
            those out.
        source_features: dict from the name of an extra source input to its number of ids, id 0
            padding; or None. Each is embedded and joined to the word's embedding (the feature-rich
            encoder of Zhou et al. 2017).
        feature_size: size of each feature's embedding.
        scheduled_sampling: whether training feeds some of the model's own predictions (Bengio et
            al. 2015): each token is the gold one with probability `gold_probability`, else the
            likeliest of the model's distribution. `gold_probability`, a weight that is not trained,
            is 1 until it is set, as `pipeline.training.scheduled_sampling` does. The inputs must
            then have `source_feed_ids`; the labels stay the gold ones.
        lexicon_shape: for heads that need a lexicon of translations, (rows, K): how many source
            words have a row, and the most translations that one has; see `set_lexicon`. The inputs
            must then have int `[batch, source_length]` `source_lexicon_rows`.
        composition: what a source word's vector is: `"lookup"`, one for each word of the
            vocabulary, one of `CharacterComposition.FUNCTIONS`, or both added, `"lookup+sum"` and
            its like (Arthur 2018, chapter 4). With characters the inputs must have int `[batch,
            source_length * word_length]` `source_characters`, as many places for each word.
        composition_options: dict of `word_length` and of arguments of `CharacterComposition`
            (`characters` and, where wanted, others); for compositions with characters.
        tie_embeddings: what shares its weights: `"none"`; `"target"`, the target's embeddings and
            the softmax over words (Press and Wolf 2017); or `"all"`, the source's embeddings, too,
            where one vocabulary has both. They begin with N(0, 1/e), small enough for a softmax,
            and are multiplied by sqrt(e) as inputs.
        label_smoothing: epsilon of training, see `CopyHead.target_log_prob`: what `call` returns is
            then, in training alone, (1 - epsilon) log p(target) + epsilon times the mean log p.
        embedding_dropout: share of units dropped on words' vectors; None takes the body's dropout.
        word_dropout: share of words, of source and target, whose whole vector is dropped (Sennrich
            et al. 2016, https://arxiv.org/abs/1606.02891).
        output_dropout: share of units dropped on what the head reads; None is as the body says.
        guided_alignment_weight: of `alignment.guided_alignment_loss` in the training loss, which
            teaches the head's `copy_log_weights` where the target's tokens stand in the source and,
            with a `lexicon_shape`, what they translate (`alignment.teacher_alignment`).
        consistency_weight: alpha of R-Drop (Liang et al. 2021): a training reads each row twice,
            with other dropout, and its two distributions are drawn together; see `TargetScoring`.
        embedding_stddev: of the first vectors of features and composed words; a body's own choice.

    Raises:
        ValueError: no head has that name, or it needs a lexicon and there is no `lexicon_shape`; an
            unknown composition; or embeddings that cannot be tied.
    """

    decoding_samples = 1

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        # A body's own definitions; what it inherits is checked already.
        for name in ("call", "encode"):
            if name in vars(cls):
                setattr(cls, name, checked(vars(cls)[name], with_targets=name == "call"))

    def __init__(
        self,
        source_vocabulary_size,
        target_vocabulary_size,
        head,
        head_options=None,
        large_vocabulary_size=0,
        large_vocabulary_drawn=0,
        source_features=None,
        feature_size=16,
        scheduled_sampling=False,
        lexicon_shape=None,
        composition="lookup",
        composition_options=None,
        tie_embeddings="none",
        label_smoothing=0.0,
        embedding_dropout=None,
        word_dropout=0.0,
        output_dropout=None,
        guided_alignment_weight=0.0,
        consistency_weight=0.0,
        embedding_stddev=1.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if (
            large_vocabulary_size < 0
            or large_vocabulary_size + large_vocabulary_drawn >= target_vocabulary_size
        ):
            # A smaller vocabulary than the set leaves nothing to choose.
            large_vocabulary_size = 0
        self.set_dropouts(embedding_dropout, word_dropout, output_dropout)
        self.target_vocabulary_size = target_vocabulary_size
        self.set_scoring(
            large_vocabulary_size,
            large_vocabulary_drawn,
            label_smoothing,
            consistency_weight,
            scheduled_sampling,
        )
        self.head_name = head
        self.head = make_head(
            head, target_vocabulary_size, dtype=self.dtype_policy, **(head_options or {})
        )
        self.make_feature_vectors(
            source_features,
            feature_size,
            composition,
            composition_options,
            embedding_stddev,
            tie_embeddings,
        )
        if self.head.needs_lexicon and lexicon_shape is None:
            raise ValueError(
                f"The head {head!r} needs a lexicon of translations: give lexicon_shape."
            )
        self.guided_alignment_weight = guided_alignment_weight
        self.guided_by_lexicon = bool(guided_alignment_weight) and lexicon_shape is not None
        if self.head.needs_lexicon or self.guided_by_lexicon:
            # Until `set_lexicon`, no word has a translation.
            self.lexicon_ids = self._add_table(
                lexicon_shape, "int32", getattr(self.head, "unknown_id", UNKNOWN_ID), "lexicon_ids"
            )
            self.lexicon_probabilities = self._add_table(
                lexicon_shape, "float32", 1 / lexicon_shape[1], "lexicon_probabilities"
            )
        if scheduled_sampling:
            self.gold_probability = self.add_weight(
                shape=(),
                initializer="ones",
                trainable=False,
                autocast=False,
                dtype="float32",
                name="gold_probability",
            )
            self.sampling_seed = keras.random.SeedGenerator()

    def _add_table(self, shape, dtype, value, name):
        return self.add_weight(
            shape=tuple(shape),
            initializer=keras.initializers.Constant(value),
            trainable=False,
            autocast=False,
            dtype=dtype,
            name=name,
        )

    def set_lexicon(self, ids, probabilities):
        """Fills the lexicon, which is not trained.

        Args:
            ids: int `[rows, K]`, target vocabulary ids of each row's translations; a translation
                that the vocabulary lacks is `[UNK]`. Rows 0 (padding) and 1 (source words without
                translations) are `[UNK]` alone.
            probabilities: float `[rows, K]`, p(translation | word); each row sums to 1, places that
                are not needed are 0.

        Raises:
            ValueError: another shape than `lexicon_shape`, or a row that does not sum to 1.
        """
        ids, probabilities = np.asarray(ids, "int32"), np.asarray(probabilities, "float32")
        shape = tuple(self.lexicon_ids.shape)
        if ids.shape != shape or probabilities.shape != shape:
            raise ValueError(
                f"The lexicon must have the shape {shape}; got {ids.shape} and "
                f"{probabilities.shape}."
            )
        if not np.allclose(probabilities.sum(axis=1), 1, atol=1e-3):
            raise ValueError("The probabilities of each row of a lexicon must sum to 1.")
        self.lexicon_ids.assign(ids)
        self.lexicon_probabilities.assign(probabilities)

    def build_head(self, hidden_size, memory_size, embedding_size, state_size):
        """Builds the head for the sizes of what the body will hand it."""
        self.tie_softmax()
        self.head.build_for(
            hidden_shape=(None, None, hidden_size),
            context_shape=(None, None, memory_size),
            inputs_shape=(None, None, embedding_size),
            decoder_state_shape=(None, None, state_size),
            memory_states_shape=(None, None, memory_size),
        )
        self.built = True

    def build(self, input_shape=None):
        """Nothing: every size is known in the constructor."""

    def make_memory(self, inputs, states, mask):
        """Returns the memory dict that heads and decoders read; padded states become 0."""
        states = ops.where(ops.expand_dims(mask, -1), states, ops.zeros_like(states))
        memory = {
            "states": states,
            "mask": mask,
            "extended_ids": ops.cast(inputs["source_extended_ids"], "int32"),
            **self.head.prepare(states),
        }
        if self.head.copies and self.head.merges:
            memory["places"] = first_places(memory["extended_ids"])
        if self.head.needs_lexicon:
            rows = ops.cast(inputs["source_lexicon_rows"], "int32")
            memory["lexicon_ids"] = ops.take(self.lexicon_ids, rows, axis=0)
            memory["lexicon_probabilities"] = ops.take(self.lexicon_probabilities, rows, axis=0)
        if "source_feed_ids" in inputs:
            memory["feed_ids"] = ops.cast(inputs["source_feed_ids"], "int32")
        return memory

    def shorten(self, memory, words, columns=None):
        """Restricts what is decoded to a shortlist of words for each source, and the copies.

        See `Shortlist`.

        Args:
            memory: what `encode` returned, before any repetition.
            words: int32 `[batch, N]`, such as `choose_words` returns.
            columns: those of `decoding_tables`, or None.

        Returns:
            The memory of a decoding whose ids are of the list's space, `[UNK]` for translations
            that are not in it; a token of the source that does not fit is copied from where it
            stands first.

        Raises:
            ValueError: the head has no softmax over words.
        """
        if self.head.vocabulary is None:
            raise ValueError(
                f"The head {self.head_name!r} has no softmax over words that a shortlist could "
                "make faster."
            )
        ids = memory["extended_ids"]
        place, found = find(ids, words)
        shortened = {
            **memory,
            "extended_ids": ops.where(found, place, words.shape[-1] + first_places(ids)),
            "shortlist": self.head.vocabulary.shortlist(words, columns),
        }
        if "lexicon_ids" in memory:
            translations = memory["lexicon_ids"]
            batch, length, number = ops.shape(translations)
            place, found = find(ops.reshape(translations, (batch, length * number)), words)
            place = ops.where(found, place, UNKNOWN_ID)
            shortened["lexicon_ids"] = ops.reshape(place, (batch, length, number))
        return shortened

    def share(self, memory, carry, hypotheses):
        """Makes hypotheses of a source share what they need not have each for itself.

        A body that has nothing of the kind returns what it was given.

        Args:
            memory, carry: what `encode` returned, before any repetition.
            hypotheses: how many a source has in a search.

        Returns:
            Memory and carry, in which `keras_models.layers.caches.Shared` tensors may be.
        """
        return memory, carry

    def decoder_kernels(self):
        """The kernels by which a decoding step multiplies, without the softmax'."""
        return []

    def step_kernels(self, shortlist=False):
        """All kernels by which a decoding step multiplies, as `panels.tables_of` takes them.

        Args:
            shortlist: whether decoding has shortlists, so that the softmax' kernel is not read.
        """
        kernels = [(kernel, kernel) for kernel in self.decoder_kernels()]
        has_softmax = self.head.vocabulary is not None and not shortlist
        return [*kernels, self.head.vocabulary.step_kernel()] if has_softmax else kernels

    def decoding_tables(self, shortlist=False, few_rows=False):
        """What decoding would compute of the weights alone, again and again.

        Returns a dict of tensors for `decode`, empty where there is nothing.

        Args:
            shortlist: whether decoding has shortlists, which are gathered from `columns`, the
                softmax' weights word by word.
            few_rows: whether a batch has a few hypotheses in all and a static number of them; then
                the kernels stand in panels, too, see `keras_models.layers.panels`.
        """
        tables = {}
        if shortlist and self.head.vocabulary is not None:
            tables["columns"] = self.head.vocabulary.columns()
        if few_rows:
            tables.update(panels.tables_of(self.step_kernels(shortlist), self.compute_dtype))
        return tables

    def number_of_words(self, memory):
        """How many words a step of this memory chooses among: V, or the size of its shortlist."""
        return memory["shortlist"].size if "shortlist" in memory else self.target_vocabulary_size

    def feed_ids(self, actions, memory):
        """Target vocabulary ids to feed after `actions [batch]`.

        Each is the word, or the one that stands for the copied token.
        """
        source_length = ops.shape(memory["extended_ids"])[1]
        size = self.number_of_words(memory)
        position = ops.maximum(actions - size, 0) % source_length
        copied = take_along(memory["feed_ids"], ops.expand_dims(position, -1))[:, 0]
        words = (
            memory["shortlist"].restore(actions, self.target_vocabulary_size)
            if "shortlist" in memory
            else actions
        )
        return ops.where(actions < size, words, copied)
