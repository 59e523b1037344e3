"""Answers of a model that has learned nothing: tags nested, pairs filled, directives in line.

The judge knows the text alone.
"""

import collections
import random
import re

import pytest

from tests.pipeline.export import tiny_models

TAGS = ["b", "i", "em", 'a href="x"', "0", "u class='y'"]
WORDS = "the file was not found in your folder please try again later".split()
DIRECTIVES = ["%s", "%d", "%ld", "%5.2f", "%%", "%1$s", "%(name)s", "{0}"]
DIALECTS = ("c", "python", "icu", "react")
TARGET_WORDS = [
    *("le", "fichier", "la", "de", "pas", "￭,", "￭.", "￭!", "(￭", "￭)", "￭%", "￭%￭", "<￭", "￭>"),
    *("d", "s", "b", "￭/￭", "{￭", "￭}", "<b>", "</b>", "<br>", "%s", "%d", "l'￭", "␊"),
]


def tagged(draw, depth=0):
    """A well nested text with tags."""
    parts = []
    for _ in range(draw.randint(1, 3)):
        kind = draw.random()
        if kind < 0.5 and depth < 3:
            tag = draw.choice(TAGS)
            space = draw.choice(["", " "])
            inside = tagged(draw, depth + 1) if draw.random() < 0.93 else ""
            parts.append(f"<{tag}>{space}{inside}{space}</{tag.split()[0]}>")
        elif kind < 0.58:
            parts.append(draw.choice(["<br>", "<br/>", "<0/>"]))
        elif kind < 0.65:
            parts.append(draw.choice(DIRECTIVES))
        else:
            parts.append(draw.choice([*WORDS, "Zanzibar", "Save,"]))
    return " ".join(parts)


def directed(draw):
    words = [draw.choice(WORDS) for _ in range(draw.randint(1, 5))]
    parts = [*words, *draw.choices(DIRECTIVES, k=draw.randint(2, 5))]
    draw.shuffle(parts)
    return " ".join(parts) + draw.choice(["", "?", "."])


def empty_pairs(text):
    """How many pairs of each opening tag are empty; None where tags are ill-nested."""
    found, stack = [], []
    for match in re.finditer(r"<(/?)(\w+)([^<>]*)>", text):
        closes, name, rest = match.groups()
        if name == "br" or rest.endswith("/"):
            continue
        if not closes:
            stack.append((name, match))
        elif not stack or stack[-1][0] != name:
            return None
        else:
            _, begin = stack.pop()
            inside = re.sub(r"</?\w[^<>]*>", "", text[begin.end() : match.start()])
            found += [begin.group()] * (not inside.strip())
    return None if stack else collections.Counter(found)


def ordered(text):
    return re.findall(r"%(?:s|d|ld|5\.2f)", re.sub(r"%[(]\w+[)]s|%%", "", text))


@pytest.fixture(
    scope="module", params=["pointer_generator", pytest.param("span_copy", marks=pytest.mark.slow)]
)
def served(request, tmp_path_factory):
    from pipeline.export.served_model import ServedModel

    recipe = tiny_models.make_recipe(
        data={"tokenization": "text", "placeholders": list(DIALECTS)},
        model={"head": request.param},
        decoding={
            "beam_size": 2,
            "n_best": 1,
            "batch_buckets": [64],
            "length_buckets": [48],
            "max_length_factor": 1.0,
            "max_length_offset": 1,
        },
    )
    folder = tmp_path_factory.mktemp("order")
    rows = [("the file", "le fichier")]
    return ServedModel(
        tiny_models.export_tiny(
            folder, recipe, rows, WORDS, TARGET_WORDS, ["serving_default"], train=False
        )
    )


def test_no_answer_is_out_of_order(served):
    from pipeline.text.tokenization import Tokenizer

    tokenizer = Tokenizer(dialects=DIALECTS)
    draw = random.Random(3)
    made = (tagged(draw) for _ in range(3000))
    made = [text for text in made if "</" in text and tokenizer.count(text) <= 40]
    sources = [*made[:600], *(directed(draw) for _ in range(172))]
    assert len(sources) == 772 and all(empty_pairs(source) is not None for source in sources)
    pairs = [(source, answer["text"]) for source, answer in zip(sources, served.predict(sources))]
    assert [(s, a) for s, a in pairs if empty_pairs(a) is None] == []
    assert [(s, a) for s, a in pairs if empty_pairs(a) - empty_pairs(s)] == []
    assert [(s, a) for s, a in pairs if ordered(a) != ordered(s)] == []
    kept = tokenizer.protected_tokens
    assert [(s, a) for s, a in pairs if sorted(kept(a)) != sorted(kept(s))] == []
