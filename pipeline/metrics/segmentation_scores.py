"""How well words were found: found words against the words of a text that has spaces."""

EXAMPLES = 12


def _spans(words):
    """Returns the set of (first, behind the last) character places of words, white space not
    counted.
    """
    spans, place = set(), 0
    for word in words:
        spans.add((place, place + len(word)))
        place += len(word)
    return spans


def _f1(common, found, expected):
    return 2 * common / (found + expected) if found + expected else 0.0


def score(found, expected):
    """Compares segmentations of the same texts.

    word_f1 is the F1 of words that are found whole, the field's measure of segmentation (Sproat and
    Emerson 2003); boundary_f1 that of the boundaries between words, a text's ends left out. Both
    are of all texts together.

    Args:
        found, expected: lists of lists of words, each pair the same characters.

    Returns:
        dict: `word_f1`, `word_precision`, `word_recall`, `boundary_f1`, `mean_length` and
            `expected_mean_length` (characters of a word).

    Raises:
        ValueError: two segmentations are of different texts.
    """
    words = [0, 0, 0]  # in common, found, expected
    bounds = [0, 0, 0]
    characters = 0
    for one, other in zip(found, expected, strict=True):
        if "".join(one) != "".join(other):
            raise ValueError(
                f"The segmentations {' '.join(one)!r} and {' '.join(other)!r} are not of one text."
            )
        spans = _spans(one), _spans(other)
        ends = [{last for _, last in group} - {len("".join(one))} for group in spans]
        for totals, (mine, yours) in ((words, spans), (bounds, ends)):
            totals[0] += len(mine & yours)
            totals[1] += len(mine)
            totals[2] += len(yours)
        characters += len("".join(one))
    return {
        "word_f1": _f1(*words),
        "word_precision": words[0] / words[1] if words[1] else 0.0,
        "word_recall": words[0] / words[2] if words[2] else 0.0,
        "boundary_f1": _f1(*bounds),
        "mean_length": characters / words[1] if words[1] else 0.0,
        "expected_mean_length": characters / words[2] if words[2] else 0.0,
    }


def describe(scores):
    """Returns one line that says the scores."""
    number = scores.get("left_out", 0)
    left_out = (
        f"; {number} texts left out, whose characters normalization or limits changed"
        if number
        else ""
    )
    return (
        f"F1 of words {100 * scores['word_f1']:.1f} %, of boundaries "
        f"{100 * scores['boundary_f1']:.1f} %; {scores['mean_length']:.2f} characters "
        f"a word (the text's own have {scores['expected_mean_length']:.2f}){left_out}"
    )


def of_answers(sources, answers):
    """Compares the words that a model found with those of its sources, where these have spaces.

    Args:
        sources: list of strings.
        answers: what the model answered, with `source_tokens`.

    Returns:
        `score`'s dict (without it where no source has a space), `left_out`, the number of texts
        whose characters are not those of what was found (they were normalized, or cut), and
        `examples`, a list of {"found", "expected"} of the first texts.
    """
    # Parted by white space, but for the text inside a placeholder or tag, which is one token.
    found = [answer["source_tokens"] for answer in answers]
    compared = [
        ([word.replace(" ", "") for word in words], source.split())
        for words, source in zip(found, sources, strict=True)
    ]
    compared = [pair for pair in compared if "".join(pair[0]) == "".join(pair[1])]
    has_spaces = any(len(expected) > 1 for _, expected in compared)
    return {
        **(score(*zip(*compared)) if has_spaces else {}),
        "left_out": len(answers) - len(compared),
        "examples": [
            {"found": one, "expected": other if has_spaces else None}
            for one, other in compared[:EXAMPLES]
        ],
    }
