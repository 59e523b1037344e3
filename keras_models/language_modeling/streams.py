"""A stream of words cut into rows, and the walk along them."""

import numpy as np

# A stream begins as if a sentence had just ended.
START_ID = 3
PAD_ID = 0


class Rows:
    """A stream cut into contiguous rows, of which parts are read; the stream is never copied.

    Args:
        ids: int `[words]`, the stream, such as a file that is mapped into memory.
        batch_size: number of rows.
        start_id: the word before the stream's first.

    Attributes:
        length: words of a row; the last one is padded with 0.

    Raises:
        ValueError: there are fewer words than rows.
    """

    def __init__(self, ids, batch_size, start_id=START_ID):
        self._ids = np.asarray(ids)
        if len(self._ids) < batch_size:
            raise ValueError(
                f"A stream of {len(self._ids)} words cannot be cut into {batch_size} rows: give "
                "more text."
            )
        self._start_id = start_id
        self.length = -(-len(self._ids) // batch_size)
        self._starts = np.arange(batch_size)[:, np.newaxis] * self.length

    def targets(self, begin, end):
        """Returns the words `begin..end - 1` of each row, int32 `[batch_size, end - begin]`."""
        places = self._starts + np.arange(begin, end)
        words = self._ids.take(places, mode="clip")
        return np.where(places < len(self._ids), words, PAD_ID).astype("int32")

    def inputs(self, begin, end):
        """Returns the word before each of `targets(begin, end)`, in the same form."""
        places = self._starts + np.arange(begin, end)
        words = self._ids.take(places - 1, mode="clip")
        words = np.where(places == 0, self._start_id, words)
        return np.where(places < len(self._ids), words, PAD_ID).astype("int32")


def rows_of(ids, batch_size, start_id=START_ID):
    """Cuts a stream into contiguous rows.

    Args:
        ids: int `[words]`, the stream.
        batch_size: number of rows.
        start_id: the word before the stream's first.

    Returns:
        inputs and targets, int32 `[batch_size, length]`: each word's predecessor, and the word. The
        last row is padded with 0.

    Raises:
        ValueError: there are fewer words than rows.
    """
    rows = Rows(ids, batch_size, start_id)
    return rows.inputs(0, rows.length), rows.targets(0, rows.length)


def updates_of(length, window, stride, carry):
    """Returns the updates of one walk along rows.

    Args:
        length: number of words of a row.
        window: L, the model's window.
        stride: s, the number of words by which an update advances.
        carry: whether states are carried over; see `FitOptions`.

    Returns:
        A list of (begin, end, losses): each update reads the words `begin..end - 1` and takes the
        loss of the last `losses` of them. Every word's loss is taken exactly once.

    Raises:
        ValueError: the stride is below 1, or above the window that it advances in.
    """
    if stride < 1 or (not carry and stride > window):
        raise ValueError(
            f"The stride must be between 1 and the window ({window}) where windows are read anew; "
            f"got {stride}."
        )
    if carry:
        return [
            (begin, min(begin + stride, length), min(stride, length - begin))
            for begin in range(0, length, stride)
        ]
    end = min(window, length)
    updates = [(0, end, end)]
    while end < length:
        # The last stride may be a shorter one. Windows always begin a multiple of the stride, where
        # the states are known.
        begin = updates[-1][0] + stride
        advanced = min(end + stride, length)
        updates.append((begin, advanced, advanced - end))
        end = advanced
    return updates
