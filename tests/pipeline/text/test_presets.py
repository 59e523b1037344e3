"""Presets that cannot be used: one sentence each, before anything runs."""

import sys
import types

import pytest

from pipeline.recipes.recipe import recipe_from_dict
from pipeline.text import presets
from tests.keras_models import keras_hub_presets


def recipe_of(preset):
    model = {"body": "keras_hub", "preset": str(preset)}
    return recipe_from_dict({"name": "tiny", "data": {"units": "preset"}, "model": model})


def test_a_t5(tmp_path):
    folder = keras_hub_presets.save_t5(tmp_path / "t5", ["the nation of nations"], size=20)
    presets.check(recipe_of(folder))
    # Padding, unknown, padding in the place of a start, the end.
    assert presets.PresetTokens.read(folder).specials == (0, 2, 0, 1)
    # Words are cut before the network is loaded, which is another kind of part.
    assert presets.load(folder, lambda hub: hub.models.Backbone).num_layers == 2


def test_a_bart(tmp_path):
    folder = keras_hub_presets.save_bart(tmp_path / "bart", ["the nation of nations"])
    presets.check(recipe_of(folder))
    # Padding, unknown, start and end.
    assert presets.PresetTokens.read(folder).specials == (1, 3, 0, 2)


def test_a_network_without_an_encoder(monkeypatch):
    tokenizer = types.SimpleNamespace(backbone_cls=type("GPT2Backbone", (), {}))
    monkeypatch.setattr(presets, "load", lambda preset, kind: tokenizer)
    with pytest.raises(presets.PresetError, match="is a GPT2Backbone, which has no encoder"):
        presets.check(recipe_of("gpt2_base_en"))


@pytest.mark.parametrize("name", ["t5_smal", "folder/that/is/not/there"])
def test_a_preset_that_is_not_there(name):
    with pytest.raises(presets.PresetError, match=f"preset {name} of model.preset cannot be load"):
        presets.check(recipe_of(name))


def test_a_tokenizer_of_another_kind(tmp_path):
    hub = keras_hub_presets.keras_hub
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "nation"]
    hub.tokenizers.BertTokenizer(vocabulary=words).save_to_preset(str(tmp_path))
    keras_hub_presets.backbone("bart").save_to_preset(str(tmp_path))
    with pytest.raises(
        presets.PresetError, match="has a BertTokenizer, which cuts texts into Word"
    ):
        presets.check(recipe_of(tmp_path))


def test_without_keras_hub(monkeypatch):
    monkeypatch.setitem(sys.modules, "keras_hub", None)
    with pytest.raises(presets.PresetError, match=r"pip install 'path/to/verbatim\[hub\]'"):
        presets.check(recipe_of("t5_small_multi"))
