"""Rows of several lengths in one array."""

import numpy as np


def padded(rows, dtype, length=None):
    """Rows of different lengths as one array, zeros behind them."""
    rows = [np.asarray(row, dtype) for row in rows]
    result = np.zeros((len(rows), length or max(map(len, rows)), *rows[0].shape[1:]), dtype)
    for number, row in enumerate(rows):
        result[number, : len(row)] = row
    return result
