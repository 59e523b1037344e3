"""Copy mechanisms by the names that recipes have for them."""

from keras_models.heads import HEADS


def make_head(name, vocabulary_size, dtype=None, **options):
    """Returns the head called `name`.

    Args:
        name: a key of `HEADS`.
        vocabulary_size: V.
        dtype: dtype policy.
        **options: the head's own arguments.

    Raises:
        ValueError: no head has that name, or it has no such option.
    """
    if name not in HEADS:
        raise ValueError(f"There is no head named {name!r}; the heads are {', '.join(HEADS)}.")
    return HEADS[name](vocabulary_size, dtype=dtype, name="head", **options)
