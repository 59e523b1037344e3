"""What the tests of the gate share: models, exported one time."""

import pytest


@pytest.fixture(scope="package")
def models(tmp_path_factory):
    from tests.pipeline.evaluation.evaluated_models import DAMAGED, GOOD, save_model

    folder = tmp_path_factory.mktemp("models")
    return {
        name: save_model(folder / name, answers)
        for name, answers in (("good", GOOD), ("damaged", DAMAGED))
    }
