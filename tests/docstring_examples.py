"""What tests of docstrings' examples share."""

import doctest


def assert_holds(example):
    """Asserts that an example, one of `doctest`, prints what it says."""
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(example, out=said.append).failed == 0, "".join(said)


def names_with_examples(examples):
    """Returns the last parts of the names that examples belong to."""
    return {example.name.rpartition(".")[2] for example in examples}
