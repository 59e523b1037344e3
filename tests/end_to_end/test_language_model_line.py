"""Plain text in, a language model out:
measured as one stream, compared with its softmax twin, shown in the report.
"""

import json
import pathlib
import random

import pytest

from pipeline.commands import main
from pipeline.metrics import registry
from pipeline.recipes import loading
from pipeline.runners import local_runner

pytestmark = pytest.mark.slow

OVERRIDES = (
    "data.train_files=['train.txt']",
    "data.eval_files=['valid.txt']",
    "vocabulary.target_size=60",
    "vocabulary.min_count=2",
    "model.embedding_size=8",
    "model.hidden_size=8",
    "language_model.window=12",
    "language_model.stride=12",
    "language_model.batch_size=4",
    "language_model.recurrent_layers=1",
    "language_model.evaluation_batch_size=1",
    "training.epochs=2",
    "decoding.batch_buckets=[2]",
    "decoding.length_buckets=[32]",
    "evaluation.bootstrap_samples=50",
    "baseline.head=softmax",
    "language_model.max_perplexity_change=0.0",
)


def text_of_names(seed, sentences):
    """Each sentence names somebody twice; one in four is somebody that no other sentence names."""
    draw = random.Random(seed)
    lines = []
    for number in range(sentences):
        name = f"new{seed}x{number}" if number % 4 == 0 else f"name{draw.randrange(20)}"
        lines.append(f"mr. {name} said that {name} is here\n")
    return "".join(lines)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("language_model")
    for name, seed, sentences in (("train", 1, 120), ("valid", 2, 24)):
        (folder / f"{name}.txt").write_text(text_of_names(seed, sentences), encoding="utf-8")
    recipe = loading.load_recipe("penn_treebank_small", OVERRIDES)
    return (
        folder,
        recipe,
        local_runner.run(recipe, str(folder), folder / "run"),
    )


def test_both_models_are_measured_on_the_whole_stream(finished, tmp_path, capsys):
    folder, _, facts = finished
    pointer, softmax = (system["metrics"] for system in facts["systems"])
    assert set(softmax) == {
        "perplexity",
        "word_perplexity",
        "perplexity_with_copies",
        "validation_perplexity",
    }
    for metrics in (pointer, softmax):
        assert metrics["perplexity"]["details"]["words"] == 24 * 8
        assert (
            metrics["perplexity"]["low"]
            < metrics["perplexity"]["value"]
            < metrics["perplexity"]["high"]
        )
        # Training saw the same stream, from its beginning, with the weights that were kept.
        assert metrics["perplexity"]["value"] == pytest.approx(
            metrics["validation_perplexity"]["value"], rel=1e-3
        )
    # A softmax copies nothing; of the unknown words a pointer can copy each second one.
    assert softmax["perplexity"]["value"] == pytest.approx(
        softmax["perplexity_with_copies"]["value"], rel=1e-5
    )
    assert pointer["perplexity"]["value"] != pytest.approx(
        pointer["perplexity_with_copies"]["value"], rel=1e-4
    )
    assert pointer["perplexity"]["details"]["unknown_words"] == 2 * 6
    assert pointer["passage_perplexity"]["value"] > 1 and set(facts["comparison"]) == {
        *("perplexity", "perplexity_with_copies"),
    }
    # The pushed model says the same of the same file.
    arguments = [
        "evaluate",
        "--model",
        facts["paths"]["models"],
        "--data",
        str(folder / "valid.txt"),
    ]
    assert main.main([*arguments, "--json", str(tmp_path / "facts.json")]) == 0
    assert "Perplexity, copied words credited" in capsys.readouterr().out
    found = json.loads((tmp_path / "facts.json").read_text(encoding="utf-8"))["metrics"]
    for name, metric in found.items():
        assert metric["value"] == pytest.approx(pointer[name]["value"], rel=1e-5)


def test_the_report_shows_words_by_frequency_and_where_the_pointer_looked(finished):
    _, _, facts = finished
    by_frequency = {
        part["seen"]: part["words"] for part in facts["systems"][0]["log_perplexity_by_frequency"]
    }
    assert (
        by_frequency["0"] == 2 * 6
        and sum(by_frequency.values()) == 24 * 7
        and by_frequency["100-999"] == 24 * 5
    )
    assert len(facts["heat_maps"]) == 4
    for one in facts["heat_maps"]:
        assert len(one["tokens"]) == len(one["attention"]) == 8
        for row, share, source, token in zip(
            *(one[key] for key in ("attention", "copy_probability", "copied_from", "tokens"))
        ):
            assert sum(row) <= share + 1e-3 <= 1.001 and len(row) == len(one["source_tokens"])
            assert source < 0 or one["source_tokens"][source] == token or token.startswith("new")
    page = pathlib.Path(facts["paths"]["report"]).read_text(encoding="utf-8")
    assert (
        "log perplexity" in page
        and "the pointer’s share" in page
        and page.count('role="img"') == 2 + 1 + 4
    )
    assert registry.LABELS["perplexity_with_copies"] in page
    # Unseen words repeat themselves here, which the pointer alone can know.
    wins = facts["sentences"]["wins"]
    assert (
        wins[0]["gain"] > 0
        and len(wins[0]["words"]) == 7 + 1
        and "▲" in page[page.index('id="wins"') :]
    )


def test_a_run_repeated_with_a_change_threshold_pushes_nothing_twice(finished):
    """The last blessed model is the candidate itself: there is nothing to compare it with."""
    folder, recipe, facts = finished
    again = local_runner.run(recipe, str(folder), folder / "run")
    assert again["blessed"] and again["blessing_reason"] == facts["blessing_reason"]
    assert again["systems"] == facts["systems"]
    versions = [path for path in pathlib.Path(facts["paths"]["models"]).iterdir() if path.is_dir()]
    assert len(versions) == 1
