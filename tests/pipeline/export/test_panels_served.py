"""The search of one text multiplies by kernels in panels; other searches do not."""

import numpy as np

from tests.pipeline.export.tiny_models import BEAM, make_recipe, transform_tiny, untrained

WORDS = ["open", "close", "page"]
TEXTS = ["open page x1", "close page"]


def test_one_text_alone(tmp_path, monkeypatch):
    from keras_models.layers import panels
    from pipeline.export import decoder
    from pipeline.export.serving_module import ServingModule

    monkeypatch.setattr(panels, "SMALLEST", 0)
    monkeypatch.setattr(decoder, "PANELS_ARE_FASTER", True)
    recipe = make_recipe(decoding={**BEAM, "batch_buckets": [1, 4]})
    output = transform_tiny(tmp_path, recipe, [(text, text) for text in TEXTS], WORDS, WORDS)
    module = ServingModule(untrained(recipe, output), output, recipe)
    compiled, uncompiled = (module.signature(name) for name in ("n_best", "n_best_no_xla"))

    def scores():
        answers = {
            "alone": compiled(TEXTS[:1]),
            "in a batch": compiled(TEXTS),
            "alone, no XLA": uncompiled(TEXTS[:1]),
        }
        return {name: answer["score"].numpy()[0] for name, answer in answers.items()}

    expected = scores()
    for score in expected.values():
        np.testing.assert_allclose(score, expected["alone"], rtol=1e-4)
    tables = [one for name, one in module.decoder.tables.items() if name.startswith("panels")]
    assert tables
    for table in tables:
        table.assign(0 * table)
    changed = scores()
    assert not np.allclose(changed["alone"], expected["alone"], rtol=1e-4)
    for name in ("in a batch", "alone, no XLA"):
        np.testing.assert_array_equal(changed[name], expected[name])


def test_large_panels_are_left_out(tmp_path, monkeypatch):
    from keras_models.layers import panels
    from pipeline.export import decoder
    from pipeline.export.serving_module import ServingModule

    monkeypatch.setattr(panels, "SMALLEST", 0)
    monkeypatch.setattr(decoder, "PANELS_ARE_FASTER", True)
    recipe = make_recipe(decoding={**BEAM, "batch_buckets": [1, 4]})
    output = transform_tiny(tmp_path, recipe, [(text, text) for text in TEXTS], WORDS, WORDS)
    model = untrained(recipe, output)

    def tables():
        return set(ServingModule(model, output, recipe).decoder.tables)

    own = model.decoding_tables()
    monkeypatch.setattr(
        decoder, "LARGEST_TABLES", sum(4 * table.numpy().size for table in own.values())
    )
    assert tables() == set(own) == {"projections"}
    monkeypatch.setattr(decoder, "LARGEST_TABLES", 0)
    assert tables() == set()
    monkeypatch.undo()
    monkeypatch.setattr(panels, "SMALLEST", 0)
    monkeypatch.setattr(decoder, "PANELS_ARE_FASTER", False)
    assert tables() == {"projections"}
