"""Lists of tokens to ids and labels for a head, and ids back to tokens; NumPy alone."""

import numpy as np

PAD_ID, UNKNOWN_ID, START_ID, END_ID = 0, 1, 2, 3


class TokenIds:
    """Turns lists of tokens into the ids that a copy head reads and learns from.

    The ids follow the rules of the pipeline's own graph. With V target words, a token of the
    source or the target has the extended id

        its target id       if the target vocabulary has it,
        V + j               else, if it stands in the source; j is its first position there,
        `unknown_id`        else.

    Args:
        source_vocabulary, target_vocabulary: list of tokens, each at its id, or dict from tokens to
            ids. Ids 0 to 3 are padding, unknown, start and end, unless the arguments below differ;
            id 0 is always padding.
        unknown_id, start_id, end_id: the other special ids, the same on both sides.
        special_ids: ids that no token has, such as those of `[PAD]` and `[START]`. A token that
            reads like one of these is an unknown word; it can be copied.
        unknown_as: function from a token that a vocabulary lacks to the id that the network reads
            in its place, for instance that of a class of placeholders; default `unknown_id` for
            all. Labels and extended ids do not change.

    Raises:
        ValueError: a vocabulary is empty, lists a token twice, or gives two tokens the same id.

    Example:

    >>> from keras_models.token_ids import TokenIds
    >>> special = ["[PAD]", "[UNK]", "[START]", "[END]"]
    >>> ids = TokenIds([*special, "delete", "page"], [*special, "supprimer", "page"])
    >>> pairs = ids.pairs([["delete", "%s", "now"]], [["supprimer", "%s", "!"]])
    >>> pairs["source_extended_ids"]
    array([[6, 7, 8]], dtype=int32)
    >>> pairs["target_extended_ids"]
    array([[4, 7, 1, 3]], dtype=int32)
    >>> ids.tokens([4, 7, 3, 0], ["delete", "%s", "now"])
    ['supprimer', '%s']
    """

    def __init__(
        self,
        source_vocabulary,
        target_vocabulary,
        unknown_id=UNKNOWN_ID,
        start_id=START_ID,
        end_id=END_ID,
        special_ids=(PAD_ID, UNKNOWN_ID, START_ID, END_ID),
        unknown_as=None,
    ):
        special = {PAD_ID, unknown_id, start_id, end_id, *special_ids}
        self._source = _ids_of("source_vocabulary", source_vocabulary, special)
        self._target = _ids_of("target_vocabulary", target_vocabulary, special)
        self._target_tokens = _tokens_of("target_vocabulary", target_vocabulary)
        self.source_vocabulary_size = 1 + max(_tokens_of("source_vocabulary", source_vocabulary))
        self.target_vocabulary_size = 1 + max(self._target_tokens)
        self.unknown_id, self.start_id, self.end_id = unknown_id, start_id, end_id
        self._unknown_as = unknown_as or (lambda token: unknown_id)

    def sources(self, source_tokens, length=None):
        """Returns the ids of sources: what decoding needs.

        Args:
            source_tokens: list of lists of tokens.
            length: the length that they are padded to; default that of the longest.

        Returns:
            dict of int32 `[batch, length]`, 0 at padding: `source_ids`, `source_extended_ids`, and
            `source_feed_ids`, the target id that a decoder reads after a copy of that token.

        Raises:
            ValueError: a text is longer than `length`. Nothing is cut.
        """
        rows = [self._source_row(_tokens("source", tokens)) for tokens in source_tokens]
        return _padded(rows, ("source_ids", "source_extended_ids", "source_feed_ids"), length)

    def pairs(
        self,
        source_tokens,
        target_tokens,
        length=None,
        target_length=None,
        max_span=None,
        min_span=1,
    ):
        """Returns the ids and labels of pairs: what training needs.

        Args:
            source_tokens, target_tokens: lists of lists of tokens, equally many.
            length: the length that sources are padded to; default that of the longest.
            target_length: that of targets, their end counted.
            max_span: longest copied span, for `SpanCopy`; with it, its labels are made too.
            min_span: the shortest; a shorter run is generated, but for words that the vocabulary
                lacks.

        Returns:
            dict of int32 arrays, 0 at padding: those of `sources`, and `[batch, target_length]`
            `target_input_ids`, the start and the ids to feed, and `target_extended_ids`, the labels
            and the end. With `max_span` also `target_span_starts` (a span's first source position
            at its first token, else -1) and `target_span_lengths` (its length at its first token,
            -1 at its others, 0 where a word is generated).

        Raises:
            ValueError: another number of targets than of sources, or a text that is too long.
        """
        source_tokens = [_tokens("source", tokens) for tokens in source_tokens]
        target_tokens = [_tokens("target", tokens) for tokens in target_tokens]
        if len(source_tokens) != len(target_tokens):
            raise ValueError(
                f"There must be as many targets as sources; got {len(source_tokens)} sources and "
                f"{len(target_tokens)} targets."
            )
        features = self.sources(source_tokens, length)
        rows = [self._target_row(*pair) for pair in zip(source_tokens, target_tokens)]
        names = ("target_input_ids", "target_extended_ids")
        features.update(_padded(rows, names, target_length))
        if max_span is not None:
            rows = [
                self._span_row(*pair, max_span, min_span)
                for pair in zip(source_tokens, target_tokens)
            ]
            names = ("target_span_starts", "target_span_lengths")
            features.update(_padded(rows, names, target_length))
        return features

    def tokens(self, ids, source_tokens):
        """Returns the tokens of an output: the inverse of the labels.

        Args:
            ids: int `[length]`, extended ids, such as a row of `Hypotheses.tokens`. What follows
                the end or padding is ignored.
            source_tokens: the tokens of its source.

        Raises:
            ValueError: an id beyond the vocabulary and the source.
        """
        found = []
        for id in np.asarray(ids).tolist():
            if id in (PAD_ID, self.end_id):
                break
            position = id - self.target_vocabulary_size
            if position >= len(source_tokens):
                raise ValueError(
                    f"Id {id} is token {position} of the source, which has {len(source_tokens)}."
                )
            found.append(source_tokens[position] if position >= 0 else self._target_tokens[id])
        return found

    def _source_row(self, tokens):
        first = _first_positions(tokens)
        return (
            [self._fed(token, self._source) for token in tokens],
            [self._extended(token, first) for token in tokens],
            [self._fed(token, self._target) for token in tokens],
        )

    def _target_row(self, source, target):
        first = _first_positions(source)
        return (
            [self.start_id, *(self._fed(token, self._target) for token in target)],
            [*(self._extended(token, first) for token in target), self.end_id],
        )

    def _fed(self, token, vocabulary):
        id = vocabulary.get(token)
        return self._unknown_as(token) if id is None else id

    def _extended(self, token, first):
        if token in self._target:
            return self._target[token]
        return self.target_vocabulary_size + first[token] if token in first else self.unknown_id

    def _span_row(self, source, target, max_span, min_span):
        """The spans of one target, the longest first, from left to right."""
        runs = {}
        for length in range(1, max_span + 1):
            for start in range(len(source) - length + 1):
                runs.setdefault(tuple(source[start : start + length]), start)
        starts, lengths = [], []
        while len(starts) < len(target):
            place = len(starts)
            longest = min(max_span, len(target) - place)
            length = next(
                (n for n in range(longest, 0, -1) if tuple(target[place : place + n]) in runs), 0
            )
            if length < min_span:
                length = int(length > 0 and target[place] not in self._target)
            starts.append(runs[tuple(target[place : place + length])] if length else -1)
            starts += [-1] * (length - 1)
            lengths += [length, *[-1] * (length - 1)]
        return [*starts, -1], [*lengths, 0]


def _ids_of(name, vocabulary, special):
    """Returns the ids of a vocabulary's tokens, without the special ones."""
    return {token: id for id, token in _tokens_of(name, vocabulary).items() if id not in special}


def _tokens_of(name, vocabulary):
    """Returns the tokens of a vocabulary by their ids."""
    if not isinstance(vocabulary, dict):
        vocabulary = list(vocabulary)
        if len(set(vocabulary)) != len(vocabulary):
            raise ValueError(f"{name}: a token is listed twice.")
        vocabulary = {token: id for id, token in enumerate(vocabulary)}
    tokens = {int(id): token for token, id in vocabulary.items()}
    if len(tokens) != len(vocabulary):
        raise ValueError(f"{name}: two tokens have the same id.")
    if not tokens:
        raise ValueError(f"{name} is empty.")
    return tokens


def _tokens(side, tokens):
    """Returns the tokens of one text as a list."""
    if isinstance(tokens, (str, bytes)):
        raise ValueError(f"Each {side} must be a list of tokens; got the text {tokens!r}.")
    return list(tokens)


def _first_positions(tokens):
    return {token: position for position, token in reversed(list(enumerate(tokens)))}


def _padded(rows, names, length):
    """Returns a dict of int32 arrays, one for each item of the rows."""
    longest = max((len(row[0]) for row in rows), default=0)
    length = longest if length is None else length
    if longest > length:
        raise ValueError(f"A text has {longest} {names[0]}; at most {length} fit.")
    features = {name: np.zeros((len(rows), length), "int32") for name in names}
    for number, row in enumerate(rows):
        for name, ids in zip(names, row):
            features[name][number, : len(ids)] = ids
    return features
