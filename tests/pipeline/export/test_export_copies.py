"""What recipes add to the graph, through training, export and serving:
tags, lexicons, translations, span labels.
"""

import dataclasses
import itertools
import os

import numpy as np
import pytest

from pipeline.recipes.fields import RecipeError
from tests.pipeline.export.tiny_models import make_recipe, trained, warmup_signatures

pytestmark = pytest.mark.slow

# The signature that tests of what is decoded ask; the others would only take longer to trace.
DEFAULT = ("serving_default",)
CITIES = ["denver", "boston", "montreal canada", "tampa", "oslo", "lima", "cairo", "quito"]
LEXICON = "".join(f"{city} :- NP : {city.split()[0]}:ci\n" for city in CITIES)


def test_tags_and_a_copy_lexicon_reach_the_served_model(tmp_path):
    """A phrase's entity is written by a copy of its first token; the answer names the token;
    tags say which city.
    """
    (tmp_path / "lexicon.txt").write_text(LEXICON, "utf-8")
    recipe = make_recipe(
        data={
            "source_features": ["answer"],
            "surface_features": ["case"],
            "copy_lexicon": str(tmp_path / "lexicon.txt"),
        },
        model={"head": "joint_copy"},
        decoding={"length_buckets": [8, 16]},
    )

    def row(first, second, chosen):
        words = ["fly", "from", *first.split(), "to", *second.split()]
        city = (first, second)[chosen].split()
        start = 2 if chosen == 0 else 3 + len(first.split())
        tags = ["A" if start <= place < start + len(city) else "O" for place in range(len(words))]
        return " ".join(words), f"city {city[0]}:_ci", " ".join(tags)

    rows = [
        row(*cities, chosen)
        for cities in itertools.permutations(CITIES[:6], 2)
        for chosen in (0, 1)
    ]
    model = trained(
        tmp_path,
        recipe,
        rows,
        ["fly", "from", "to"],
        ["city"],
        (*DEFAULT, "n_best", "explain", "score"),
    )
    asked = [
        row("cairo", "montreal canada", 1),
        row("quito", "cairo", 0),
        row("montreal canada", "quito", 1),
    ]
    answers = model.predict(
        [source for source, _, _ in asked], features={"answer": [tags for _, _, tags in asked]}
    )
    assert [answer["text"] for answer in answers] == [target for _, target, _ in asked]
    assert answers[0]["copied_from"] == [-1, 4]
    assert answers[0]["source_tokens"] == ["fly", "from", "cairo", "to", "montreal", "canada"]
    log_probability, count = model.score([asked[0][0]], [asked[0][1]], {"answer": [asked[0][2]]})
    other, _ = model.score([asked[0][0]], ["city cairo:_ci"], {"answer": [asked[0][2]]})
    assert count.tolist() == [3] and log_probability[0] > other[0] > -1e6
    explained = model.predict(
        [asked[0][0]], signature="explain", features={"answer": [asked[0][2]]}
    )[0]
    assert np.shape(explained["attention"]) == (2, 6)

    from pipeline.export.served_model import ModelError

    with pytest.raises(ModelError, match="takes tags of answer; got none"):
        model.predict([asked[0][0]])
    with pytest.raises(
        ModelError,
        match="source text 0 has 4 tokens and 1 tags of answer; give one tag for each token",
    ):
        model.predict(["fly from oslo now"], features={"answer": ["A"]})

    # Over gRPC, and what the warm-up sends.
    from serving.client import Client, RequestError
    from serving.server import ModelServer, ServerSettings

    assert warmup_signatures(tmp_path / "model") == [*DEFAULT * 2, "n_best", "score"]
    versions = tmp_path / "versions"
    versions.mkdir()
    os.rename(tmp_path / "model", versions / "1")
    with (
        ModelServer({"tiny": str(versions)}, ServerSettings(port=0)) as server,
        Client(server.address) as client,
    ):
        (answer,) = client.predict(asked[1][0], features={"answer": asked[1][2]})
        assert answer.text == asked[1][1]
        assert (
            client.n_best(asked[1][0], features={"answer": [asked[1][2]]})[0][0].text == asked[1][1]
        )
        assert (
            client.score(asked[1][0], asked[1][1], features={"answer": asked[1][2]})[0].token_count
            == 3
        )
        with pytest.raises(RequestError, match="answer"):
            client.predict(asked[1][0])


WORDS = {
    "house": "maison",
    "water": "eau",
    "bread": "pain",
    "stone": "pierre",
    "tree": "arbre",
    "wine": "vin",
}


def dictionary_rows():
    pairs = itertools.permutations(list(WORDS), 2)
    return [(f"see {a} and {b} %s", f"voir {WORDS[a]} et {WORDS[b]} %s") for a, b in pairs]


@pytest.mark.parametrize("head", ["pointer_softmax", "softmax"])
def test_a_dictionary_writes_what_is_copied_or_unknown(tmp_path, head):
    (tmp_path / "dictionary.tsv").write_text(
        "".join(f"{a}\t{b}\n" for a, b in WORDS.items()), "utf-8"
    )
    recipe = make_recipe(
        data={"dictionary": str(tmp_path / "dictionary.tsv")},
        model={"head": head, "pointers": "dictionary" if head == "pointer_softmax" else "unknown"},
        decoding={"replace_unknown": "dictionary"},
    )
    held_out = ("see stone and wine %s", "voir pierre et vin %s")
    rows = [row for row in dictionary_rows() if row != held_out]
    # The network sees every source word and none of their translations.
    model = trained(tmp_path, recipe, rows, ["see", "and", *WORDS], ["voir", "et", "%s"], DEFAULT)
    (answer,) = model.predict([held_out[0]])
    assert answer["tokens"][-1] == "%s" and answer["text"].count("%s") == 1
    if head == "pointer_softmax":
        assert answer["text"] == held_out[1]
        assert answer["copied_from"][1] == 1 and answer["copied_from"][3] == 3
    # Where attention lies a softmax model has not been taught; what stands there is translated, the
    # placeholder never.
    written = {"voir", "et", "%s", "see", "and", *WORDS.values()}
    assert set(answer["tokens"]) <= written


def test_a_translation_needs_a_head_whose_copies_are_translations():
    with pytest.raises(RecipeError, match="'decoding.replace_unknown'.*would translate every copy"):
        make_recipe(data={"dictionary": "d.tsv"}, decoding={"replace_unknown": "dictionary"})
    recipe = make_recipe(model={"head": "softmax"}, decoding={"replace_unknown": "copy"})
    assert dataclasses.replace(recipe, name="other").decoding.replace_unknown == "copy"


def test_spans_are_learnt_and_entities_pointed_at(tmp_path):
    names = ["Ann Lee", "Bob Ray", "Cleo Fox", "Dan Poe", "Eve Kay", "Flo Zed"]

    def row(first, second):
        source = f"ask {first} about {second}"
        tags = ["B-PER" if word[0].isupper() else "O" for word in source.split()]
        return source, f"{second} knows {first}", " ".join(tags)

    rows = [row(*pair) for pair in itertools.permutations(names[:5], 2)]
    words = [word for name in names for word in name.split()]
    asked = row("Flo Zed", "Ann Lee")
    (tmp_path / "spans").mkdir()
    recipe = make_recipe(
        data={"source_features": ["ner"]}, model={"head": "span_copy", "max_span": 2}
    )
    model = trained(tmp_path / "spans", recipe, rows, ["ask", "about"], ["knows"], DEFAULT)
    (answer,) = model.predict([asked[0]], features={"ner": [asked[2]]})
    assert answer["text"] == asked[1] and answer["copied_from"] == [4, 5, -1, 1, 2]

    (tmp_path / "entities").mkdir()
    recipe = make_recipe(
        data={"source_features": ["ner"]},
        model={"head": "pointer_softmax", "pointers": "entities", "entity_feature": "ner"},
        training={"seed": 2},
    )
    # The vocabulary has every name, and yet they are copied; the encoder reads them as ids, so new
    # names are like old ones.
    model = trained(
        tmp_path / "entities", recipe, rows, ["ask", "about"], ["knows", *words], DEFAULT
    )
    (answer,) = model.predict([asked[0]], features={"ner": [asked[2]]})
    assert answer["text"] == asked[1] and answer["copied_from"] == [4, 5, -1, 1, 2]
