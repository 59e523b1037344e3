"""Ensembles: trained one by one, exported as one model that answers with provenance."""

import dataclasses

import numpy as np
import pytest

from pipeline.recipes.fields import RecipeError
from tests.pipeline.export import tiny_models
from tests.pipeline.training import tiny_training

ROWS = [(f"delete {name} now", f"effacer {name} ici") for name in ("foo", "bar", "baz", "qux")]
SOURCE_WORDS, TARGET_WORDS = ["delete", "now"], ["effacer", "ici"]


def test_members_are_trainings_of_their_seeds(tmp_path):
    from pipeline.training import ensemble_training, trainer
    from pipeline.training.checkpoints import Checkpoints
    from pipeline.training.model_inputs import ModelInputs
    from pipeline.training.training_inputs import TrainingInputs

    train = tiny_training.write_pairs(tmp_path / "train.gz", 12)
    sizes = ModelInputs(tiny_training.VOCABULARY, tiny_training.VOCABULARY)
    inputs = TrainingInputs(train, train, sizes)
    recipe = tiny_training.recipe(epochs=2, ensemble=2, seed=4)
    kept = Checkpoints(str(tmp_path / "checkpoints"))
    model, facts = ensemble_training.train_members(recipe, inputs, kept, trainer.train)
    for number, member in enumerate(model.members):
        alone = dataclasses.replace(recipe.training, seed=4 + number, ensemble=1)
        one, own = trainer.train(dataclasses.replace(recipe, training=alone), inputs)
        for found, wanted in zip(member.get_weights(), one.get_weights(), strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-4)
        assert facts["members"][number]["updates"] == own["updates"]
    first, second = (member.get_weights() for member in model.members)
    assert any((one != two).any() for one, two in zip(first, second))
    assert facts["updates"] == sum(member["updates"] for member in facts["members"])
    assert facts["parameters"] == model.count_params()
    # Each had checkpoints of its own, and all are gone.
    assert len(list((tmp_path / "checkpoints").glob("*"))) == 2
    kept.clear()
    assert not (tmp_path / "checkpoints").exists()


def test_it_is_served_as_one_model(tmp_path, monkeypatch):
    from keras_models.models import Ensemble

    recipe = tiny_models.make_recipe(decoding=tiny_models.BEAM)
    untrained = tiny_models.untrained
    members = []

    def two(recipe, transform_output):
        for seed in (1, 2):
            training = dataclasses.replace(recipe.training, seed=seed)
            member = dataclasses.replace(recipe, training=training)
            members.append(untrained(member, transform_output))
        return Ensemble(members)

    monkeypatch.setattr(tiny_models, "untrained", two)
    served = tiny_models.trained(
        tmp_path, recipe, ROWS, SOURCE_WORDS, TARGET_WORDS, None, None, False
    )
    source = "delete zap now"
    [answer] = served.predict([source])
    assert answer["text"] == " ".join(answer["tokens"])
    copied = [
        (token, source.split()[place])
        for token, place in zip(answer["tokens"], answer["copied_from"])
        if token not in TARGET_WORDS
    ]
    assert copied and all(token == word for token, word in copied)
    log_probs, counts = served.score([source], ["effacer zap ici"])
    assert counts.tolist() == [4] and np.isfinite(log_probs).all()


@pytest.mark.parametrize(
    "sections, key",
    [
        ({"training": {"initialize_from": "last pushed"}}, "training.initialize_from"),
        ({"decoding": {"shortlist_size": 32}, "lexicon": {"kind": "learned"}}, "shortlist_size"),
    ],
)
def test_what_an_ensemble_cannot_do_is_refused(sections, key):
    sections = {**sections, "training": {**sections.get("training", {}), "ensemble": 2}}
    with pytest.raises(RecipeError, match=key):
        tiny_models.make_recipe(**sections)
