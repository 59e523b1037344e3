"""Trainings of several programs, compared at equal losses."""

import pytest

from benchmarks.peers import training


def facts(rate, *losses):
    """What a training that was evaluated every ten updates has measured."""
    points = [[10 * (number + 1), loss] for number, loss in enumerate(losses)]
    return {"eval_losses": points, "pairs_an_update": 4, "target_rate": rate}


def test_programs_are_compared_at_a_loss_that_all_reach():
    ours, peer = facts(20.0, 6.0, 4.0, 3.0), facts(10.0, 7.0, 6.0, 5.0)
    measured = [{"ours": ours, "peer": peer}]
    assert training.common_loss(measured) == 5.0
    # Between the first evaluation, 6.0 after 10 updates, and the second, 4.0 after 20.
    assert training.seconds_to(5.0, ours, tokens=2.0) == pytest.approx(15 * 4 * 2 / 20)
    assert training.seconds_to(5.0, peer, tokens=2.0) == pytest.approx(30 * 4 * 2 / 10)
    assert training.seconds_to(6.5, ours, tokens=2.0) == pytest.approx(10 * 4 * 2 / 20)
    # One that became worse again between evaluations.
    assert training.seconds_to(3.5, facts(10.0, 4.0, 4.5, 3.0), tokens=1.0) == pytest.approx(
        (20 + 10 * (4.5 - 3.5) / (4.5 - 3.0)) * 4 / 10
    )
    assert training.common_loss([{"ours": ours, "peer": {}}]) is None


def test_the_fastest_of_ours_is_compared_at_the_last_loss_of_a_peer():
    taken = {
        "ours": facts(20.0, 6.0, 4.0, 3.0),
        # Faster, but it ends above the second peer's loss.
        "ours_large_vocabulary": facts(40.0, 6.0, 5.0, 4.5),
        "ours_mixed": facts(90.0, 6.0, 4.0, 3.0),
        "opennmt_py": facts(10.0, 7.0, 6.0, 5.0),
        "hugging_face": facts(10.0, 7.0, 5.0, 4.0),
        "hugging_face_mixed": facts(30.0, 7.0, 5.0, 4.0),
    }
    leads = training.leads([taken, {**taken, "opennmt_py": facts(5.0, 7.0, 6.0, 5.0)}], tokens=2.0)
    assert leads["opennmt_py"]["values"] == pytest.approx([30 / 10 * 40 / 20, 30 / 5 * 40 / 20])
    assert leads["hugging_face"]["median"] == pytest.approx(30 / 10 * 20 / 20)
    assert leads["hugging_face_mixed"]["median"] == pytest.approx(30 / 30 * 90 / 20)
    assert len(leads) == 3
    # None of ours got as far.
    assert "hugging_face" not in training.leads(
        [{**taken, "hugging_face": facts(10.0, 7.0, 2.0)}], tokens=2.0
    )
