"""A pre-trained model of keras-hub, fine-tuned and served from raw text."""

import re

import numpy as np
import pytest

from tests.keras_models import keras_hub_presets
from tests.pipeline.export.tiny_models import make_recipe, trained

pytestmark = pytest.mark.slow

ROWS = [
    ("greet ada and bob!", "hello ada, bob"),
    ("greet cleo and %(name)s!", "hello cleo, %(name)s"),
    ("greet dan and eve!", "hello dan, eve"),
    ("greet %s and dan!", "hello %s, dan"),
]


KINDS = {
    "t5": keras_hub_presets.save_t5,
    "bart": keras_hub_presets.save_bart,
    "roberta": keras_hub_presets.save_roberta,
}


@pytest.fixture(scope="module", params=KINDS)
def preset(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("preset") / request.param
    texts = [text for row in ROWS for text in row] + ["a b c d e f g h i j k l m n o p q r s t u"]
    sizes = {"hidden_dim": 16, "intermediate_dim": 24, "num_layers": 1}
    return KINDS[request.param](folder, texts, scale=0.2, **sizes)


def recipe_of(preset, **sections):
    return make_recipe(
        **{
            "data": {"units": "preset", "tokenization": "text", "max_tokens": 15},
            "model": {"body": "keras_hub", "preset": preset, "head": "pointer_generator"},
            "vocabulary": {"min_count": 1, "protected_min_count": 5},
            "training": {"epochs": 100, "bucket_lengths": [32]},
            "decoding": {"length_buckets": [32], "beam_size": 2, "n_best": 2},
            **sections,
        }
    )


def joined(units):
    """Returns the text of units."""
    text = re.sub(" ?￭ ?", "", re.sub("▁ ￭?", "", " ".join(unit for unit in units if unit)))
    return re.sub(
        rb"<0x(..)>", lambda match: bytes.fromhex(match[1].decode()), text.encode()
    ).decode()


def test_is_trained_and_answers_raw_text(preset, tmp_path):
    model = trained(tmp_path, recipe_of(preset), ROWS, (), ())
    answers = model.predict([source for source, _ in ROWS])
    assert [answer["text"] for answer in answers] == [target for _, target in ROWS]
    # A placeholder is no word of the vocabulary: it was copied, from where it stands.
    tokens, places = answers[1]["tokens"], answers[1]["copied_from"]
    assert answers[1]["source_tokens"][places[tokens.index("%(name)s")]] == "%(name)s"
    # What the preset reads of a text is all of it, in whatever script.
    texts = ["greet 朝食 and 😀 Ωé!", "%(name)s#1: ﬁ"]
    assert [joined(answer["source_tokens"]) for answer in model.predict(texts)] == texts
    scores = model.score([ROWS[0][0]] * 2, [ROWS[0][1], ROWS[2][1]])
    assert np.isfinite(scores[0]).all() and scores[0][0] > scores[0][1]
