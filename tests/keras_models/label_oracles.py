"""Labels that copying is trained with, in plain Python.

One source and one target, lists of strings.

Written from the papers' descriptions alone.
"""

GENERATE, ARGMAX = -1, -2
"""Instead of a source position: the word is generated; attention's argmax is the position."""


def longest_match_spans(source, target, max_span, min_span=1):
    """Greedy segmentation of a target into generated words and copied spans.

    Zhou 2018 needs the set of a target's copied spans and says of it that none has more than 5
    tokens; greed is ours.

    From left to right: at target position t take the longest span of the source that equals
    target[t : t + l], min_span <= l <= max_span, of equal ones the first; else generate the word.

    Returns:
        list of `("generate", word)` and `("copy", start, end)`, the end included.
    """
    segments, t = [], 0
    while t < len(target):
        best = None
        for length in range(min_span, max_span + 1):
            if t + length > len(target):
                break
            for start in range(len(source) - length + 1):
                if source[start : start + length] == target[t : t + length]:
                    best = (start, start + length - 1)
                    break
        if best is None:
            segments.append(("generate", target[t]))
            t += 1
        else:
            segments.append(("copy", *best))
            t += best[1] - best[0] + 1
    return segments


def unknown_word_pointers(source, target, vocabulary):
    """Gulcehre 2016 section 5.2, UNK pointers:
    an unknown target word points to its first occurrence in the source.

    Whether the source's own vocabulary knows the word does not matter.

    Args:
        vocabulary: the target's known words.

    Returns:
        list, for each target word a source position, or -1 (known, or not in the source: it is
        generated, as [UNK]).
    """
    return [
        GENERATE if word in vocabulary or word not in source else source.index(word)
        for word in target
    ]


def dictionary_pointers(source, target, vocabulary, dictionary, earliest=False):
    """Gulcehre 2016 section 5.3: pointers for translation.

    A target word outside of the vocabulary points to itself in the source; else to one of its
    translations in the source; each at its first position; else the label is the argmax of the
    attention.

    Args:
        dictionary: target word to list of source words.
        earliest: which of several translations that the source holds: the one first in the
            dictionary (False), or the one first in the source (True). The paper leaves it open.

    Returns:
        list, for each target word -1 (known: generated), a source position, or -2 (argmax of the
        attention).
    """
    pointers = []
    for word in target:
        if word in vocabulary:
            pointers.append(GENERATE)
        elif word in source:
            pointers.append(source.index(word))
        else:
            found = [
                source.index(translation)
                for translation in dictionary.get(word, [])
                if translation in source
            ]
            pointers.append((min(found) if earliest else found[0]) if found else ARGMAX)
    return pointers


def entity_pointers(source, target, source_entities, target_entities):
    """Gulcehre 2016 section 5.2, entity pointers: anonymised ids and pointers to them.

    Entity tokens get ids from 1, from left to right, the source before the target; the same token
    has the same id. It is done token by token, so that a part of an entity can match. A target
    entity token points to the first source entity token with its id.

    Args:
        source_entities, target_entities: booleans: whether each token is (part of) an entity.

    Returns:
        ids of the source's tokens and of the target's, 0 for those that are no entities; and
        pointers, for each target token a source position or -1.
    """
    numbers = {}

    def number(tokens, entities):
        ids = []
        for token, entity in zip(tokens, entities, strict=True):
            if not entity:
                ids.append(0)
                continue
            if token not in numbers:
                numbers[token] = len(numbers) + 1
            ids.append(numbers[token])
        return ids

    source_ids = number(source, source_entities)
    target_ids = number(target, target_entities)
    pointers = [source_ids.index(i) if i and i in source_ids else GENERATE for i in target_ids]
    return source_ids, target_ids, pointers
