"""What a preset's folder holds is part of the keys by which components find cached results."""

import json
import os

from pipeline import graph
from pipeline.recipes.loading import load_recipe


def keys(preset):
    """Returns the properties of Vocabulary and Trainer that their cache keys are made of."""
    changes = [f"model.preset={preset}", "model.body=keras_hub", "data.units=preset"]
    recipe = load_recipe("localization_en_fr", [*changes, "model.embedding_size=16"])
    settings = graph.PipelineSettings("p", "root", "models")
    components = graph.create_pipeline(recipe, "x.tsv", settings).components
    found = {component.id: component.exec_properties for component in components}
    return (
        json.loads(found["Vocabulary"]["text_settings"]).get("preset_digest"),
        json.loads(found["Trainer"]["custom_config"]).get("preset"),
    )


def test_another_content_is_another_key(tmp_path):
    preset = tmp_path / "preset"
    # A name, or a folder that cannot be reached from here, is known by the recipe alone.
    assert keys(preset) == (None, None)
    (preset / "assets").mkdir(parents=True)
    (preset / "config.json").write_text("{}")
    (preset / "assets" / "vocabulary.spm").write_text("a")
    first = keys(preset)
    assert all(first) and keys(preset) == first
    (preset / "assets" / "vocabulary.spm").write_text("b")
    os.utime(preset / "assets" / "vocabulary.spm", (1, 1))
    second = keys(preset)
    assert all(one != other for one, other in zip(first, second))
    (preset / "assets" / "vocabulary.spm").rename(preset / "vocabulary.spm")
    assert all(one != other for one, other in zip(second, keys(preset)))


def test_a_run_reads_a_preset_one_time(tmp_path, monkeypatch):
    from pipeline.readers import fingerprints

    read, sha256_of = [], fingerprints.sha256_of
    monkeypatch.setattr(fingerprints, "sha256_of", lambda file: read.append(1) or sha256_of(file))
    preset = tmp_path / "preset"
    preset.mkdir()
    (preset / "model.weights.h5").write_bytes(b"weights")
    assert keys(preset) == keys(preset)
    assert len(read) == 1
