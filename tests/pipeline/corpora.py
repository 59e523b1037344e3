"""Random texts for the tests of metrics."""

import random

WORDS = "the cat sat on a mat while seven grey dogs slept near an old %(name)s house".split()


def corpus(count=60, seed=7):
    """Returns references and two systems, the second worse."""
    draw = random.Random(seed)
    references = [" ".join(draw.choices(WORDS, k=draw.randint(3, 12))) for _ in range(count)]

    def spoil(text, rate):
        return " ".join(
            draw.choice(WORDS) if draw.random() < rate else word for word in text.split()
        )

    return (
        references,
        [spoil(text, 0.2) for text in references],
        [spoil(text, 0.4) for text in references],
    )


def several(count=60):
    """Returns outputs and their references, one to three a segment."""
    references, outputs, others = corpus(count)
    return outputs, [
        texts[: 1 + index % 3]
        for index, texts in enumerate(zip(references, others, reversed(references)))
    ]
