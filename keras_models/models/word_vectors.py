"""Vectors of words in the encoder-decoder bodies: looked up, composed, with features, tied."""

import numpy as np
from keras import ops

from keras_models.layers.character_composition import CharacterComposition
from keras_models.layers.embeddings import token_embedding
from keras_models.models.dropouts import Dropouts

#: What shares its weights: nothing; the target's embeddings and the softmax; the source's, too.
TIES = ("none", "target", "all")


class WordVectors(Dropouts):
    """Base of `Seq2Seq` that makes the vectors of source words, of their features and of target
    words.

    A subclass calls `make_feature_vectors`, then `make_word_vectors`; then `tie_softmax` before
    its head is built.
    """

    _scales = {"source": 1.0, "target": 1.0}

    def make_feature_vectors(
        self, features, feature_size, composition, composition_options, stddev, tie_embeddings
    ):
        """Makes the embeddings of the source's features. See `Seq2Seq` for the arguments."""
        self.feature_embeddings = {
            name: token_embedding(
                size, feature_size, self.dtype_policy, f"{name}_embedding", stddev
            )
            for name, size in sorted((features or {}).items())
        }
        self.embedding_stddev = stddev
        self.features_size = feature_size * len(self.feature_embeddings)
        # `lookup`, `sum` or `lookup+sum`.
        self.looks_up = composition.split("+")[0] == "lookup"
        self.composed_by = composition.removeprefix("lookup").removeprefix("+")
        if self.composed_by and self.composed_by not in CharacterComposition.FUNCTIONS:
            raise ValueError(
                "composition must be 'lookup', one of "
                f"{', '.join(CharacterComposition.FUNCTIONS)}, or both joined by '+'; got "
                f"{composition!r}."
            )
        self.composition_options = composition_options or {}
        if tie_embeddings not in TIES:
            raise ValueError(
                f"tie_embeddings must be one of {', '.join(TIES)}; got {tie_embeddings!r}."
            )
        if tie_embeddings == "all" and not self.looks_up:
            raise ValueError(
                f"tie_embeddings 'all' needs vectors of source words that are looked up; "
                f"composition {composition!r} has none."
            )
        self.tie_embeddings = tie_embeddings

    def make_word_vectors(self, source_size, target_size, units, stddev=1.0, tied_scale=1.0):
        """Makes what words' vectors are made by.

        Args:
            source_size, target_size: numbers of ids.
            units: size of the vectors.
            stddev: of the first vectors that are looked up, as what reads them has them.
            tied_scale: what those are multiplied by where they are tied to the softmax, which needs
                smaller ones.

        Raises:
            ValueError: source and target share vectors, and differ in size.
        """
        if self.tie_embeddings == "all" and source_size != target_size:
            raise ValueError(
                "tie_embeddings 'all' needs one vocabulary for source and target; got "
                f"{source_size} and {target_size} words."
            )

        scales = {"none": (1.0, 1.0), "target": (1.0, tied_scale), "all": (tied_scale, tied_scale)}
        self._scales = dict(zip(("source", "target"), scales[self.tie_embeddings]))

        def embedding(size, side):
            first = stddev / self._scales[side]
            return token_embedding(size, units, self.dtype_policy, f"{side}_embedding", first)

        if self.tie_embeddings == "all":
            self.build_source_embedding(units, lambda: embedding(target_size, "target"))
            self.target_embedding = self.source_embedding
        else:
            self.build_source_embedding(units, lambda: embedding(source_size, "source"))
            self.target_embedding = embedding(target_size, "target")

    def build_source_embedding(self, size, lookup):
        """Makes what a source word's vector is made by.

        Args:
            size: of the vectors.
            lookup: function that makes the embedding of the source vocabulary.
        """
        self.source_embedding = lookup() if self.looks_up else None
        self.composer = None
        if self.composed_by:
            options = {
                name: value
                for name, value in self.composition_options.items()
                if name != "word_length"
            }
            self.composer = CharacterComposition(
                self.composed_by, units=size, dtype=self.dtype_policy, name="composition", **options
            )
            self.composer.build()

    def embedding_layers(self):
        """Returns the layers that make words' vectors, each once."""
        layers = [self.source_embedding, self.composer, *self.feature_embeddings.values()]
        if self.target_embedding is not self.source_embedding:
            layers.append(self.target_embedding)
        return [layer for layer in layers if layer is not None]

    def stacks(self):
        """The layers that read and write, from the input to the output.

        Returns a dict from `"embeddings"`, `"encoder"` and `"decoder"` to a list, of lists of
        layers that are equally far from the output; what is in none of them is the head's. It is
        empty for bodies that do not tell.
        """
        return {}

    def tie_softmax(self):
        """Makes the target's embeddings the weights of the head's softmax, if they are tied."""
        if self.tie_embeddings != "none":
            self.head.tie(self.target_embedding)

    def set_word_vectors(self, side, ids, values):
        """Gives words vectors that were trained elsewhere, as their first ones.

        They are scaled by one number, so that their variance is that of the other words' vectors.

        Args:
            side: `"source"` or `"target"`.
            ids: int `[words]`.
            values: float `[words, embedding_size]`.

        Raises:
            ValueError: source words are not looked up, or another size.
        """
        layer = self.source_embedding if side == "source" else self.target_embedding
        if layer is None:
            raise ValueError("Source words have no vectors of their own: they are composed.")
        values = np.asarray(values, "float32")
        if values.shape != (len(ids), layer.output_dim):
            raise ValueError(
                f"The vectors must have the shape {(len(ids), layer.output_dim)}; got "
                f"{values.shape}."
            )
        first = np.array(ops.convert_to_numpy(layer.embeddings.value))
        size = float(np.sqrt(np.mean(np.square(values))))
        first[np.asarray(ids)] = values * (float(first.std()) / size if size else 1.0)
        layer.embeddings.assign(first)

    def _look_up(self, side, ids):
        layer = self.source_embedding if side == "source" else self.target_embedding
        vectors = layer(ops.cast(ids, "int32"))
        scale = self._scales[side]
        return vectors if scale == 1.0 else vectors * ops.cast(scale, vectors.dtype)

    def embed_source(self, inputs):
        """Embeds words and features: `[batch, source_length, embedding_size + features_size]`."""
        words = 0
        if self.source_embedding is not None:
            words = self._look_up("source", inputs["source_ids"])
        if self.composer is not None:
            shape = (*ops.shape(inputs["source_ids"]), self.composition_options["word_length"])
            composed = self.composer(ops.reshape(inputs["source_characters"], shape))
            words = words + composed * ops.cast(self.embedding_stddev, composed.dtype)
        parts = [words]
        parts += [
            layer(ops.cast(inputs[name], "int32"))
            for name, layer in self.feature_embeddings.items()
        ]
        return parts[0] if len(parts) == 1 else ops.concatenate(parts, axis=-1)

    def embed_target(self, ids):
        """Embeds words of the target: int `[...]` to `[..., embedding_size]`."""
        return self._look_up("target", ids)
