"""Exported Transformers as models of CTranslate2: the same numbers, answers and refusals."""

import json

import numpy as np
import pytest

pytest.importorskip("ctranslate2", reason="what writes and runs the models is not installed")

from pipeline.export import ctranslate2_export
from pipeline.export.ctranslate2_model import CTranslate2Model
from pipeline.export.served_model import ServedModel
from tests.pipeline.export.tiny_models import export_tiny, make_recipe

WORDS = [f"w{number}" for number in range(20)]
ROWS = [(" ".join(WORDS[:10]), " ".join(WORDS[10:]))]
NETWORK = {
    "body": "transformer",
    "head": "softmax",
    "hidden_size": 16,
    "embedding_size": 16,
    "attention_heads": 2,
    "feed_forward_size": 24,
    "encoder_layers": 2,
    "decoder_layers": 2,
}
SOURCES = ["w1 w2 w3", "w7", "w4 w4 w9 w0 w2 w5 w19", "w3 unseen w1", "%s", "w1 %s"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("exported")


@pytest.fixture(scope="module")
def exported(folder):
    recipe = make_recipe(
        model=NETWORK,
        decoding={"beam_size": 3, "n_best": 3, "replace_unknown": "copy"},
    )
    return export_tiny(folder, recipe, ROWS, WORDS, WORDS, train=False)


def test_thin(exported, tmp_path):
    ctranslate2_export.convert(str(exported), str(tmp_path / "converted"))
    ours, theirs = ServedModel(exported), CTranslate2Model(tmp_path / "converted", True)
    print(json.dumps(json.loads((tmp_path / "converted/verbatim.json").read_text()), indent=1)[-900:])
    for a, b in zip(ours.predict(SOURCES, "explain"), theirs.predict(SOURCES, True)):
        print(a)
        print(b)
    assert 0
