"""Several bodies that answer as one."""

import math

import keras
from keras import ops

from keras_models.layers import panels


@keras.saving.register_keras_serializable("verbatim")
class Ensemble(keras.Model):
    """The mean of several models' predictions, step by step.

        p(y_t | y_<t, x) = 1/K sum_k p_k(y_t | y_<t, x)

    over the extended vocabulary: a token has the mean of what the members give it, whether they say
    it or copy it. A source position's share of a copy is the mean of theirs, so provenance stays.

    Wherever a body is taken (`decode`, `evaluate`, an export) an ensemble is, too. It is not
    trained: its members are.

    Args:
        members: list of bodies of the same vocabularies, such as `RecurrentSeq2Seq` and
            `TransformerSeq2Seq`, whose heads merge repeated words alike, and copy spans of the same
            length.
        name: Keras' name of it.

    Raises:
        ValueError: no member, or members that do not fit together.

    References:
        Sutskever, Vinyals, Le 2014, section 3.6

    Example:

    >>> import numpy as np
    >>> from keras_models.models import Ensemble, RecurrentSeq2Seq
    >>> members = [RecurrentSeq2Seq(
    ...     source_vocabulary_size=20, target_vocabulary_size=10, hidden_size=8, embedding_size=4)
    ...     for _ in range(2)]
    >>> log_probs = Ensemble(members)({
    ...     "source_ids": np.array([[4, 5, 6]]),
    ...     "source_extended_ids": np.array([[10, 11, 12]]),
    ...     "target_input_ids": np.array([[2, 7]]),
    ...     "target_extended_ids": np.array([[7, 3]]),
    ... })
    >>> tuple(log_probs.shape)
    (1, 2)
    """

    def __init__(self, members, name=None):
        super().__init__(name=name)
        if not members:
            raise ValueError("An ensemble needs at least one member.")
        self.members = list(members)
        for what, of in _ALIKE.items():
            values = {of(member) for member in self.members}
            if len(values) > 1:
                raise ValueError(
                    f"The members of an ensemble need the same {what}, but have "
                    f"{', '.join(map(str, sorted(values)))}."
                )
        if any(member.decoding_samples != 1 for member in self.members):
            raise ValueError("A body that reads a source in several ways cannot be in an ensemble.")
        self.decoding_samples = 1
        self.built = True

    @property
    def head(self):
        """The first member's head: what it can write is what all can."""
        return self.members[0].head

    @property
    def head_name(self):
        """The name of the first member's head."""
        return self.members[0].head_name

    @property
    def target_vocabulary_size(self):
        """The number of the target's words."""
        return self.members[0].target_vocabulary_size

    def build(self, input_shape=None):
        """Nothing: the members are built."""

    def encode(self, inputs, training=False, max_length=None):
        """Reads the source with every member.

        Args:
            inputs, training, max_length: see `RecurrentSeq2Seq.encode`.

        Returns:
            memory: dict with `mask` and `extended_ids`, the same for all, and `members`, the memory
                of each.
            carry: list of the members' first carries.
        """
        memories, carries = zip(
            *(
                member.encode(inputs, training=training, max_length=max_length)
                for member in self.members
            )
        )
        shared = {name: memories[0][name] for name in ("mask", "extended_ids")}
        return {**shared, "members": list(memories)}, list(carries)

    def share(self, memory, carry, hypotheses):
        """Shares what each member can share, see `Seq2Seq.share`."""
        members, carries = zip(
            *(
                member.share(own, first, hypotheses)
                for member, own, first in zip(self.members, memory["members"], carry)
            )
        )
        return {**memory, "members": list(members)}, list(carries)

    def step(self, actions, carry, memory, index):
        """One step of every member.

        Args:
            actions: int32 `[rows]`, the tokens chosen last, as extended ids.
            carry: list of the members' carries.
            memory: what `encode` returned, with tables of `decoding_tables` if there are any.
            index: the step's number.

        Returns:
            `(log_probs, copy_log_probs, attention, carry)`, as of a member; attention is the mean.
        """
        outputs = []
        for number, (member, own) in enumerate(zip(self.members, memory["members"])):
            tables = {
                name.removeprefix(_prefix(number)): table
                for name, table in memory.items()
                if name.startswith(_prefix(number))
            }
            outputs.append(member.step(actions, carry[number], {**own, **tables}, index))
        log_probs, copies, attention, carries = zip(*outputs)
        mean_attention = sum(attention[1:], attention[0]) / len(attention)
        return _log_mean(log_probs), _log_mean(copies), mean_attention, list(carries)

    def call(self, inputs, training=False):
        """Scores the targets, as a body does.

        Returns float32 `[batch, target_length]`, the log-probability of each target token.
        """
        return _log_mean([member(inputs, training=training) for member in self.members])

    def step_kernels(self, shortlist=False):
        """Those of all members, see `Seq2Seq.step_kernels`."""
        return [kernel for member in self.members for kernel in member.step_kernels(shortlist)]

    def decoding_tables(self, shortlist=False, few_rows=False):
        """The members' tables, see `Seq2Seq.decoding_tables`.

        Raises:
            ValueError: a shortlist is asked for.
        """
        if shortlist:
            raise ValueError("An ensemble decodes among all words: set no shortlist.")
        dtype = self.members[0].compute_dtype
        own = panels.tables_of(self.step_kernels(), dtype) if few_rows else {}
        return own | {
            _prefix(number) + name: table
            for number, member in enumerate(self.members)
            for name, table in member.decoding_tables().items()
        }

    def get_config(self):
        members = [keras.saving.serialize_keras_object(member) for member in self.members]
        return {"name": self.name, "members": members}

    @classmethod
    def from_config(cls, config):
        members = [keras.saving.deserialize_keras_object(member) for member in config["members"]]
        return cls(members, name=config["name"])


#: What members have in common, by its name in messages.
_ALIKE = {
    "number of target words": lambda member: member.target_vocabulary_size,
    "way of copying (copies, or copies nothing)": lambda member: member.head.copies,
    "way of counting repeated words (merges)": lambda member: member.head.merges,
    "longest span (max_span)": lambda member: member.head.max_span,
}


def _prefix(number):
    """Returns what the names of a member's tables begin with."""
    return f"member {number} "


def _log_mean(log_values):
    """Returns the logarithm of a mean, from logarithms; -inf stays what it is for all members."""
    if len(log_values) == 1:
        return log_values[0]
    return ops.logsumexp(ops.stack(log_values), axis=0) - math.log(len(log_values))
