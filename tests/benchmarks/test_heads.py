"""A comparison on the command line is a campaign with one table."""

import pytest

from benchmarks import heads
from benchmarks.campaign.jobs import Folders, Job
from benchmarks.campaign.plan import PlanError


def test_variants_are_rows_tested_against_the_first(tmp_path):
    plan = heads.plan_of(
        "geo880", "data/geo880", ["none", "joint_copy"], [1, 2], ["model.dropout=0.1"]
    )
    [table] = plan.tables
    assert [row.name for row in table.rows] == ["none", "joint_copy"]
    assert table.against == "none" and table.metrics == ("exact_match", "token_accuracy")
    jobs = [Job(table, row, 1, Folders("", tmp_path, tmp_path, shared=True)) for row in table.rows]
    # What they have in common is done once, and their results lie apart.
    assert jobs[0].folder == jobs[1].folder and jobs[0].facts != jobs[1].facts
    assert "--data data/geo880" in " ".join(jobs[0].command())


def test_a_language_model_has_metrics_of_its_own():
    [table] = heads.plan_of("penn_treebank_small", "ptb", ["attention"], [1], []).tables
    assert table.metrics == heads.LANGUAGE_MODEL_METRICS


def test_an_unknown_variant_is_refused():
    with pytest.raises(PlanError, match="no variant magic"):
        heads.plan_of("geo880", "data/geo880", ["magic"], [1], [])
