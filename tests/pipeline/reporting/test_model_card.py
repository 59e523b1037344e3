"""The card of a pushed model: whole, harmless to read, and out of a server's way."""

import json
import pathlib

import pytest

from pipeline.recipes import loading
from pipeline.reporting import model_card
from pipeline.tasks import task_of
from serving import model_versions, version_folders
from tests.pipeline.reporting.example_facts import example_facts

RECIPE = loading.load_recipe("localization_en_fr")
USE = task_of(RECIPE).describe_use(RECIPE)


@pytest.fixture(scope="module")
def facts():
    recipe = loading.load_recipe("localization_en_fr", ["licence=GPL-2.0, by its translators"])
    return {**example_facts(), "recipe": recipe.to_dict()}


def test_the_card_says_what_the_run_found(facts, tmp_path):
    path = pathlib.Path(model_card.write_model_card(tmp_path, "17", facts, USE))
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "model_card_17.json",
        "model_card_17.md",
    ]
    card = json.loads((tmp_path / "model_card_17.json").read_text(encoding="utf-8"))
    assert (card["name"], card["version"]) == ("localization_en_fr", "17")
    assert card["metrics"] == facts["systems"][0]["metrics"]
    assert card["baselines"]["softmax"] == facts["systems"][1]["metrics"]
    assert card["recipe"] == facts["recipe"] and card["gate"] == facts["blessing_reason"]
    assert card["data"]["counts"] == facts["counts"]
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# Model card: localization_en_fr, version 17\n")
    bleu = facts["systems"][0]["metrics"]["bleu"]
    assert f"| BLEU | {bleu['value']:.2f} \\[{bleu['low']:.2f}, {bleu['high']:.2f}\\] |" in text
    for words in (
        "12,873 records read, 11,904 kept, 969 rejected",
        "rejected, duplicate pair: 640",
        "GPL-2.0",
        "Apache-2.0",
    ):
        assert words in text
    assert (
        "| domain = \\<b\\>law\\</b\\> | 40 | 31.25 |" in text
        and "| domain = menu | 9 | n/a |" in text
    )
    assert "A source of more than" in text and "exactly as often as its source" in text


def test_a_licence_that_is_not_named_is_said_to_be_unknown(facts):
    recipe = {**facts["recipe"], "licence": ""}
    assert "The recipe does not say" in model_card.to_markdown(
        model_card.make_card(1, {**facts, "recipe": recipe}, USE)
    )


def test_a_language_model_has_a_card_too():
    recipe = loading.load_recipe("penn_treebank")
    metric = {"name": "perplexity", "value": 80.5, "unit": "points", "lower_is_better": True}
    facts = {
        "recipe": recipe.to_dict(),
        "systems": [{"name": "pointer_sentinel", "metrics": {"perplexity": metric}}],
        "versions": {"keras": "3"},
        "counts": {"read": 3, "words_by_split": {"train": 1000, "eval": 10}},
        "comparison": {},
        "blessing_reason": "Fine.",
    }
    text = model_card.to_markdown(
        model_card.make_card(2, facts, task_of(recipe).describe_use(recipe))
    )
    assert (
        "80.50" in text and "words by split: train 1,000, eval 10" in text and "likely text" in text
    )


def test_a_server_does_not_take_a_card_for_a_version(facts, tmp_path):
    (tmp_path / "17").mkdir()
    (tmp_path / "17" / version_folders.MODEL_FILE).write_bytes(b"")
    model_card.write_model_card(tmp_path, "17", facts, USE)
    assert list(model_versions.ModelVersions("m", tmp_path)._versions_on_disk()) == [17]


def test_the_card_says_how_long_it_was_trained_and_shortens_many_slices(facts):
    system = {**facts["systems"][0], "seconds": 99.6, "updates": 12345}
    slices = [{**facts["slices"][0], "slice": f"domain = {number}"} for number in range(23)]
    card = model_card.make_card(1, {**facts, "systems": [system], "slices": slices}, USE)
    text = model_card.to_markdown(card)
    assert "- Trained for 100 s and 12,345 updates\n" in text
    assert text.count("| domain = ") == 20 and "\n3 more slices are in the JSON.\n" in text
    assert len(card["slices"]) == 23
