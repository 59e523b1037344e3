import numpy as np
import pytest

from keras_models.decoding.constraints import constraints
from tests.keras_models.backends import numpy

SIZE = 8
LOG_PROBS = np.linspace(-3, -1, SIZE, dtype="float32")[None]


def allowed(index, **options):
    result = numpy(constraints(SIZE - 2, 2, max_length=4, **options)(LOG_PROBS, index))[0]
    kept = np.exp(result) > 0
    np.testing.assert_array_equal(result[kept], LOG_PROBS[0][kept])
    return list(np.flatnonzero(kept))


@pytest.mark.parametrize(
    "index,options,expected",
    [
        (0, {}, [3, 4, 5, 6, 7]),
        (3, {}, [3, 4, 5, 6, 7]),
        (4, {}, [3]),
        (0, {"min_length": 2}, [4, 5, 6, 7]),
        (1, {"min_length": 2}, [4, 5, 6, 7]),
        (2, {"min_length": 2}, [3, 4, 5, 6, 7]),
        (0, {"allow_unknown": True}, [1, 3, 4, 5, 6, 7]),
        (0, {"start_id": 5, "end_id": 6, "unknown_id": 7}, [1, 2, 3, 4, 6]),
        (4, {"start_id": 5, "end_id": 6, "unknown_id": 7}, [6]),
    ],
)
def test_what_a_step_may_choose(index, options, expected):
    assert allowed(index, **options) == expected
