"""A pre-trained model of keras-hub, fine-tuned and served from raw text."""

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


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("preset") / "t5"
    texts = [text for row in ROWS for text in row] + ["a b c d e f g h i j k l m n o p q r s t u"]
    sizes = {"hidden_dim": 16, "intermediate_dim": 24, "num_layers": 1}
    return keras_hub_presets.save_t5(folder, texts, scale=0.2, **sizes)


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


def test_is_trained_and_answers_raw_text(preset, tmp_path):
    model = trained(tmp_path, recipe_of(preset), ROWS, (), ())
    answers = model.predict([source for source, _ in ROWS])
    assert [answer["text"] for answer in answers] == [target for _, target in ROWS]
    # A placeholder is no word of the vocabulary: it was copied, from where it stands.
    tokens, places = answers[1]["tokens"], answers[1]["copied_from"]
    assert answers[1]["source_tokens"][places[tokens.index("%(name)s")]] == "%(name)s"
    scores = model.score([ROWS[0][0]] * 2, [ROWS[0][1], ROWS[2][1]])
    assert np.isfinite(scores[0]).all() and scores[0][0] > scores[0][1]
