"""What long work says: sentences, and steps that never come too often."""

import pytest

from pipeline.common import progress


@pytest.fixture
def log(caplog):
    """What was logged, at every level."""
    with caplog.at_level(progress.STEP, logger=progress.LOGGER.name):
        yield caplog


def test_details_stand_below_what_was_said_before(log):
    progress.say("first")
    with progress.indented():
        progress.say("detail")
        with progress.counted("reading", 2, "records"):
            pass
    progress.warn("last")
    assert [(record.getMessage(), record.depth) for record in log.records] == [
        ("first", 0),
        ("detail", 1),
        ("reading: 0 of 2 records", 1),
        ("reading: 0 of 2 records", 1),
        ("last", 0),
    ]
    assert [record.levelname for record in log.records][-1] == "WARNING"


def test_steps_are_counted_and_thinned(log):
    with progress.counted("reading", 1000, "records", done=10) as advance:
        for _ in range(990):
            advance()
    steps = [record.step for record in log.records]
    assert steps[0].done == 10 and not steps[0].finished
    assert steps[-1] == progress.Step("reading", 1000, 1000, "records", finished=True)
    assert len(steps) < 50


def test_work_that_fails_is_finished_all_the_same(log):
    with pytest.raises(KeyError), progress.counted("reading", None, "records") as advance:
        advance(3)
        raise KeyError
    assert log.records[-1].step == progress.Step("reading", 3, None, "records", finished=True)


def test_a_library_call_prints_nothing(capfd):
    progress.say("said")
    with progress.counted("reading", 1, "records") as advance:
        advance()
    assert capfd.readouterr() == ("", "")
