"""How growth is said and drawn, and the corpus that grows."""

import xml.etree.ElementTree as ElementTree

import pytest

from benchmarks.growth import corpus, decoding, exponents


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_exponent_of_a_power_law(power):
    sizes = [16, 64, 1024]
    assert exponents.exponent(sizes, [3 * size**power for size in sizes]) == pytest.approx(
        power, abs=1e-9
    )


def test_a_constant_cost_does_not_hide_how_it_ends():
    sizes = [100, 1, 10, 1000]
    values = [100.0 + size for size in sizes]
    assert exponents.exponent(sizes, values) < 0.5
    assert exponents.last_exponent(sizes, values) == pytest.approx(0.74, abs=0.01)


def test_curves_are_drawn_on_logarithmic_scales(tmp_path):
    points = [(1, 10.0), (4, 40.0), (16, 160.0)]
    curves = [{"title": "Milliseconds <a call>", "x_label": "beam", "points": points}] * 3
    exponents.write(tmp_path / "curves.svg", "Growth", curves)
    root = ElementTree.parse(tmp_path / "curves.svg").getroot()
    assert root.get("viewBox") == "0 0 640 500"
    (line, *_) = [one for one in root if one.tag.endswith("polyline")]
    (x0, y0), (x1, y1), (x2, y2) = [
        tuple(map(float, point.split(","))) for point in line.get("points").split()
    ]
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2) and y0 - y1 == pytest.approx(y1 - y2, abs=0.2)
    assert 58 <= x0 < x2 <= 304 and 46 <= y2 < y0 <= 206
    labels = [one.text for one in root if (one.text or "").isdigit()]
    assert labels[:8] == ["10", "20", "50", "100", "200", "1", "4", "16"]
    texts = [one.text for one in root]
    assert texts.count("exponent 1.00; at the end 1.00") == 3 and "Milliseconds <a call>" in texts


@pytest.mark.parametrize("values", [(5.0, 5.0), (0.3, 0.31), (900.0, 1100.0), (2.0, 128000.0)])
def test_marks_enclose_what_is_drawn(values):
    (panel,) = exponents.panels(
        [{"title": "", "x_label": "", "points": [(1, values[0]), (2, values[1])]}]
    )["panels"]
    assert all(panel["top"] <= point["y"] <= panel["bottom"] for point in panel["points"])
    assert 2 <= len(panel["y_ticks"]) <= 9


def test_sources_have_exactly_the_length():
    texts = decoding.texts_of([("a b c", ""), ("d", "")], 6, 2)
    assert texts == ["a b c d a b", "c d a b c d"]


def test_a_model_serves_all_sources_and_batches():
    from benchmarks.peers import ours_model

    job = decoding.job_of({**decoding.BASE, "beam": 8}, threads=1)
    recipe = ours_model.recipe(job)
    assert recipe.decoding.length_buckets == decoding.AXES["source"].sizes
    assert recipe.decoding.batch_buckets == decoding.AXES["batch"].sizes
    assert type(job).from_json(job.to_json()) == job
    assert recipe.decoding.min_length == recipe.decoding.max_length_offset == job.length


def test_table_of_an_axis():
    facts = {"seconds": 0.1, "low": 0.05, "high": 0.2, "peak_bytes": 1e9, "first_seconds": 4.0}
    text = decoding.table("beam", [(1, facts), (2, {**facts, "seconds": 0.2})])
    assert "| 1 | 100.0 (50.0 to 200.0) | 1,000 | 4.0 |" in text
    assert "the power 1.00 of the beam" in text
    assert [curve["title"] for curve in decoding.curves({"beam": [(1, facts), (2, facts)]})] == [
        "Milliseconds a call",
        "Peak of memory, MB",
    ]


def test_an_interrupted_measurement_goes_on_under_the_same_conditions(tmp_path):
    path, conditions = tmp_path / "progress.json", {"commit": "a", "packages": {"tfx": "1"}}
    row = {"component": "ingest", "pairs": 10, "seconds": 1.0, "peak_bytes": 2}
    corpus.Progress(path, conditions).add(row)
    again = corpus.Progress(path, conditions)
    assert again.rows == [row]
    assert again.has("ingest", 10) and not again.has("ingest", 20)
    assert not corpus.Progress(path, {**conditions, "commit": "b"}).rows


def test_a_corpus_grows_without_duplicates(tmp_path):
    for language, lines in {"en": "a\nb\n", "ja": "A\nB\n"}.items():
        (tmp_path / f"train.{language}").write_text(lines, "utf-8")
    corpus.grow(tmp_path / "train.en", tmp_path / "train.ja", tmp_path / "grown", 5)
    pairs = list(
        zip(
            *(
                (tmp_path / "grown" / f"train.{language}").read_text("utf-8").splitlines()
                for language in ("en", "ja")
            )
        )
    )
    assert len(set(pairs)) == 5 and pairs[:2] == [("a", "A"), ("b", "B")]


def test_corpus_curves_need_two_sizes():
    rows = [
        {"component": name, "pairs": pairs, "seconds": 1.0, "peak_bytes": 1e9}
        for name in ("ingest", "lexicon")
        for pairs in (10, 100)
    ]
    assert corpus.curves(rows[:1]) == []
    assert [curve["title"] for curve in corpus.curves(rows)][:2] == [
        "ingest: seconds",
        "ingest: peak of memory, MB",
    ]
