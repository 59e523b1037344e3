"""Pictures of the words that a model looks at."""

import numpy as np


def test_a_picture_shows_weights_copies_and_where_they_came_from():
    from pipeline.training import heat_maps

    drawn = heat_maps.picture([[0.0, 1.0], [0.5, np.nan]], [1.0, 0.0], [1, -1])
    assert drawn.shape == (24, 48, 3) and drawn.dtype == np.uint8
    inside, corner = (5, 5), (0, 0)

    def pixel(row, column, place):
        return tuple(drawn[row * 12 + place[0], column * 12 + place[1]].tolist())

    white, blue, orange = (255, 255, 255), (10, 84, 148), (163, 75, 0)
    assert [pixel(0, column, inside) for column in (0, 1, 3)] == [white, blue, orange]
    # The copied cell alone is outlined.
    assert [pixel(row, column, corner) for row, column in ((0, 1), (0, 0), (1, 1))] == [
        orange,
        white,
        white,
    ]
    assert pixel(1, 0, inside) == (132, 170, 202) and pixel(1, 3, inside) == white
