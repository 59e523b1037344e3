"""The values of variables, taken out and put back: what a checkpoint of a training keeps."""

from keras import ops


def values_of(variables):
    """Returns the values of Keras variables, a list of arrays."""
    return [ops.convert_to_numpy(variable.value) for variable in variables]


def assign(variables, values):
    """Sets Keras variables to what `values_of` returned.

    Raises:
        ValueError: another number of values than of variables, or another shape.
    """
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
