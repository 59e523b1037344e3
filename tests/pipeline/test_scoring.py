"""Metrics: equal to the tools they stand for, right on hand-counted cases, and clear about what is wrong."""

import json
import pathlib
import random
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
import sacrebleu
from sacrebleu.significance import PairedTest, _bootstrap_resample, estimate_ci

from pipeline import configs, scoring

# Development data, which lies beside the checkout and is no part of it.
CHECKS = pathlib.Path(__file__).parents[3] / "shared" / "data" / "metric_checks"
WORDS = "the cat sat on a mat while seven grey dogs slept near an old %(name)s house".split()


def _corpus(count=60, seed=7):
    """Returns references and two systems, the second worse."""
    draw = random.Random(seed)
    references = [" ".join(draw.choices(WORDS, k=draw.randint(3, 12))) for _ in range(count)]

    def spoil(text, rate):
        return " ".join(draw.choice(WORDS) if draw.random() < rate else word for word in text.split())

    return references, [spoil(text, 0.2) for text in references], [spoil(text, 0.4) for text in references]


@pytest.mark.parametrize(
    "name, oracle", [("bleu", sacrebleu.corpus_bleu), ("chrf", sacrebleu.corpus_chrf), ("ter", sacrebleu.corpus_ter)]
)
def test_values_equal_sacrebleu(name, oracle):
    references, outputs, _ = _corpus()
    result = scoring.score([name], outputs, references, bootstrap_samples=0)[name]
    assert result.value == pytest.approx(oracle(outputs, [references]).score, abs=1e-9)
    assert (result.low, result.high) == (None, None)
    assert "version:" in result.signature and "nrefs:1" in result.signature


def test_interval_is_from_sacrebleus_own_resamples(monkeypatch):
    # Small chunks: drawing the indices in pieces must not change them.
    monkeypatch.setattr(scoring, "_BOOTSTRAP_CHUNK_ELEMENTS", 1000)
    references, outputs, _ = _corpus(61)
    result = scoring.score(["bleu"], outputs, references, bootstrap_samples=200)["bleu"]
    metric = sacrebleu.BLEU()
    _, scores = _bootstrap_resample(metric._extract_corpus_statistics(outputs, [references]), metric, 200)
    values = sorted(score.score for score in scores)
    assert values[4] <= result.low <= values[5]
    assert values[194] <= result.high <= values[195]
    assert "bs:200|seed:12345" in result.signature
    _, half_width = estimate_ci(values)
    assert (result.high - result.low) / 2 == pytest.approx(half_width, rel=0.05)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_p_value_equals_sacrebleus_paired_test(seed):
    references, better, worse = _corpus(40, seed)
    ours = scoring.paired_bootstrap(["bleu", "chrf"], better, worse, references, bootstrap_samples=300)
    test = PairedTest(
        [("baseline", worse), ("system", better)],
        {"BLEU": sacrebleu.BLEU(), "CHRF": sacrebleu.CHRF()},
        [references],
        test_type="bs",
        n_samples=300,
    )
    theirs = {key: results[1].p_value for key, results in test()[1].items() if key != "System"}
    # sacrebleu sums in float32, so that one resample may fall on the other side of a tie.
    assert ours["bleu"].p_value == pytest.approx(theirs["BLEU"], abs=1.5 / 301)
    assert ours["chrf"].p_value == pytest.approx(theirs["chrF2"], abs=1.5 / 301)
    assert ours["bleu"].difference > 0


@pytest.mark.parametrize("seed", [1, 2])
def test_randomisation_equals_sacrebleus(seed, monkeypatch):
    monkeypatch.setattr(scoring, "_BOOTSTRAP_CHUNK_ELEMENTS", 3000)  # several chunks must be the same trials
    references, better, worse = _corpus(41, seed)
    both = list(zip(references, worse))
    metrics = {"BLEU": sacrebleu.BLEU(), "CHRF": sacrebleu.CHRF(), "TER": sacrebleu.TER()}
    for first, second, texts, streams in (
        (better, worse, references, [references]),
        (better, better[:20] + worse[20:23] + better[23:], both, [references, worse]),
    ):
        ours = scoring.paired_randomisation("bleu,chrf,ter", first, second, texts, trials=200, bootstrap_samples=100)
        test = PairedTest([("b", second), ("s", first)], metrics, streams, test_type="ar", n_samples=200)
        theirs = {key: results[1].p_value for key, results in test()[1].items() if key != "System"}
        # Sums in another order may fall on the other side of a tie.
        for name, key in (("bleu", "BLEU"), ("chrf", "chrF2"), ("ter", "TER")):
            assert ours[name].p_value == pytest.approx(theirs[key], abs=1.5 / 201), name
            assert ours[name].low <= ours[name].difference <= ours[name].high
    assert "ar:200|bs:100|seed:12345" in ours["bleu"].signature


def test_randomisation_of_the_other_metrics():
    references, better, worse = _corpus(30)
    names = "nist,exact_match,rouge1"
    found = scoring.paired_randomisation(names, better, worse, references, trials=100, bootstrap_samples=0)
    assert found["nist"].p_value == pytest.approx(1 / 101) and found["nist"].low is None
    # One segment of difference: every trial reaches it.
    almost = ["cat", *references[1:]]
    found = scoring.paired_randomisation("exact_match", references, almost, references, trials=100)
    assert found["exact_match"].p_value == 1
    undefined = scoring.paired_randomisation("placeholder_fidelity", ["a"], ["b"], ["a"], ["a"], trials=10)
    assert undefined["placeholder_fidelity"].p_value is None
    with pytest.raises(scoring.ScoringError, match="at least 1 trial; got 0"):
        scoring.paired_randomisation("bleu", better, worse, references, trials=0)


@pytest.mark.parametrize("test", [scoring.paired_bootstrap, scoring.paired_randomisation])
def test_two_equal_systems_do_not_differ(test):
    references, outputs, _ = _corpus()
    for result in test("bleu,exact_match,rouge", outputs, outputs, references, bootstrap_samples=50).values():
        assert (result.difference, result.p_value) == (0, 1.0)


def test_paired_test_of_shares():
    sources = ["open %s"] * 40
    good, bad = ["ouvrir %s"] * 40, ["ouvrir %s"] * 20 + ["ouvrir"] * 20
    result = scoring.paired_bootstrap(["placeholder_fidelity"], good, bad, good, sources, bootstrap_samples=500)
    comparison = result["placeholder_fidelity"]
    assert comparison.difference == pytest.approx(0.5)
    assert comparison.p_value < 0.01
    assert 0.3 < comparison.low < 0.5 < comparison.high < 0.7
    almost = ["ouvrir %s"] * 39 + ["ouvrir"]
    result = scoring.paired_bootstrap(["placeholder_fidelity"], good, almost, good, sources, bootstrap_samples=500)
    assert result["placeholder_fidelity"].p_value > 0.1


def test_placeholder_fidelity_counts_multisets():
    sources = ["%s of %s", "{a} and %(b)s", "no placeholder", "none here", "<b>%d</b>"]
    outputs = ["%s sur %s", "{a} et %(c)s", "rien", "rien %s", "%d"]
    results = scoring.score(["placeholder_fidelity", "protected_fidelity"], outputs, outputs, sources)
    result = results["placeholder_fidelity"]
    assert result.value == pytest.approx(2 / 3)
    assert result.details == {"n": 3, "broken": 1, "all_segments": pytest.approx(3 / 5), "all_n": 5, "invented": 1}
    assert 0 <= result.low <= result.value <= result.high <= 1
    assert results["protected_fidelity"].value == pytest.approx(1 / 3)  # the tags of the last one are lost
    lost_one = scoring.score(["placeholder_fidelity"], ["%s sur"], ["x"], ["%s of %s"])["placeholder_fidelity"]
    assert lost_one.value == 0


def test_share_of_nothing_is_undefined_and_json():
    result = scoring.score(["placeholder_fidelity"], ["a"], ["a"], ["a"])["placeholder_fidelity"]
    assert result.value is None and result.low is None
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["value"] is None
    assert "n/a" in scoring.format_table({"system": {"placeholder_fidelity": result}})
    comparison = scoring.paired_bootstrap(["placeholder_fidelity"], ["a"], ["b"], ["a"], ["a"], bootstrap_samples=10)
    assert comparison["placeholder_fidelity"].p_value is None


def test_unseen_copies():
    sources = ["Import Zanzibar now", "Use plone.app.quux twice plone.app.quux", "Known words"]
    references = ["Importer Zanzibar", "Utilisez plone.app.quux", "Mots connus"]
    outputs = ["Importer Zanzibar", "Utilisez cela", "Mots connus"]
    result = scoring.score(["unseen_copies"], outputs, references, sources, training_words={"Import", "words"})
    assert result["unseen_copies"].details == {"n": 2, "copied": 1}
    assert result["unseen_copies"].value == 0.5
    seen = scoring.score(["unseen_copies"], outputs, references, sources, {"Zanzibar", "plone.app.quux"})
    assert seen["unseen_copies"].value is None


def test_copy_rate_and_precision_count_running_words():
    sources = ["open the Foo file", "nothing"]
    outputs = ["ouvrir Foo Foo the", "rien"]
    references = [["ouvrir Foo"], ["rien"]]
    names = "copy_rate,copy_precision"
    found = scoring.score(names, outputs, references, sources, bootstrap_samples=20)
    assert found["copy_rate"].details == {"words": 5, "in_source": 3} and found["copy_rate"].value == pytest.approx(0.6)
    assert found["copy_precision"].details == {"copied": 3, "in_reference": 1}
    references = [["ouvrir Foo", "Foo Foo"], ["rien"]]
    found = scoring.score(names, outputs, references, sources, bootstrap_samples=20)
    assert found["copy_precision"].value == pytest.approx(2 / 3)
    assert scoring.score(names, [""], ["a"], ["a"])["copy_rate"].value is None


def test_rouge_recall_is_that_of_the_reference_with_the_best_f1():
    names = ["rouge1", "rouge1_recall", "rougeL_recall"]
    found = scoring.score(names, ["a b c d"], [["a", "a b c x y z"]], bootstrap_samples=0)
    assert found["rouge1_recall"].value == pytest.approx(50) == pytest.approx(found["rouge1"].details["recall"])
    assert found["rouge1"].value == pytest.approx(60)
    assert found["rougeL_recall"].value == pytest.approx(50)
    assert found["rougeL_recall"].signature.startswith("nrefs:2|recall|")


def test_rare_word_recall_clips_and_takes_the_best_reference():
    training = {"often": 8, "seven": 7, "never": 0}
    options = {"training_words": training, "bootstrap_samples": 0}
    outputs, references = ["often seven new new", "x"], [["often seven seven new"], ["often", "often y x"]]
    result = scoring.score("rare_word_recall", outputs, references, **options)["rare_word_recall"]
    assert result.details == {"n": 5, "found": 3} and result.value == pytest.approx(0.6)
    nothing = scoring.score("rare_word_recall", ["often"], ["often"], **options)["rare_word_recall"]
    assert nothing.value is None
    with pytest.raises(scoring.ScoringError, match="how often each word"):
        scoring.score("rare_word_recall", ["a"], ["a"], training_words={"a"})


def test_word_f1_by_frequency():
    training = {"one": 1, "six": 6, "many": 1000}
    outputs, references = ["many many six new", "six"], [["many six six gone"], ["many", "six"]]
    options = {"training_words": training, "bootstrap_samples": 20}
    result = scoring.score("word_f1_by_frequency", outputs, references, **options)["word_f1_by_frequency"]
    assert result.value == pytest.approx(2 * 3 / (5 + 5))
    buckets = {bucket["seen"]: bucket for bucket in result.details["by_frequency"]}
    assert list(buckets) == ["0", "1", "2", "3", "4", "5-9", "10-99", "100-999", "1000+"]
    assert buckets["0"]["f1"] == 0 and buckets["1"]["f1"] is None
    assert (buckets["5-9"]["matches"], buckets["5-9"]["output_words"], buckets["5-9"]["reference_words"]) == (2, 2, 3)
    assert buckets["1000+"]["f1"] == pytest.approx(2 / 3)
    json.dumps(result.to_dict(), allow_nan=False)


def test_bleu_by_length_is_the_bleu_of_each_part():
    references, outputs, _ = _corpus()
    result = scoring.score("bleu_by_length", outputs, references, bootstrap_samples=20)["bleu_by_length"]
    assert result.value == pytest.approx(sacrebleu.corpus_bleu(outputs, [references]).score, abs=1e-9)
    for part, keep in (("0-9", lambda size: size < 10), ("10-19", lambda size: size >= 10)):
        chosen = [index for index, text in enumerate(references) if keep(len(sacrebleu.BLEU().tokenizer(text).split()))]
        expected = sacrebleu.corpus_bleu([outputs[i] for i in chosen], [[references[i] for i in chosen]]).score
        found = {bucket["words"]: bucket["bleu"] for bucket in result.details["by_length"]}
        assert found[part] == pytest.approx(expected, abs=1e-9)
    assert found["60+"] is None


def _nist_by_nltk(outputs, references):
    from nltk.translate import nist_score

    return nist_score.corpus_nist(
        [[text.split() for text in texts] for texts in references], [o.split() for o in outputs]
    )


@pytest.mark.parametrize("seed", range(5))
def test_nist_equals_nltk(seed):
    references, good, bad = _corpus(50, seed)
    options = {"tokenization": "whitespace", "bootstrap_samples": 0}
    for outputs in (good, bad):
        result = scoring.score("nist", outputs, references, **options)["nist"]
        assert result.value == pytest.approx(_nist_by_nltk(outputs, [[text] for text in references]), abs=1e-9)
    for count in (2, 3):
        several = [texts[: 1 + index % count] for index, texts in enumerate(zip(references, bad, references[::-1]))]
        result = scoring.score("nist", good, several, **options)["nist"]
        assert result.value == pytest.approx(_nist_by_nltk(good, several), abs=1e-9)
    short = [" ".join(text.split()[:-2]) or "cat" for text in good]
    result = scoring.score("nist", short, several, **options)["nist"]
    assert result.value == pytest.approx(_nist_by_nltk(short, several), abs=1e-9)


def test_nist_of_resampled_test_sets_equals_nltk():
    references, outputs, others = _corpus(20)
    several = list(zip(references, others))
    table = scoring._Table("nist", [outputs, others], several, None, None, {"tokenization": "whitespace"})
    values = table.resample(10, 1)
    generator = np.random.default_rng(1)
    for sample, indices in enumerate(generator.choice(20, size=(10, 20))):
        for system, texts in enumerate((outputs, others)):
            expected = _nist_by_nltk([texts[index] for index in indices], [several[index] for index in indices])
            assert values[system]["nist"][sample] == pytest.approx(expected, abs=1e-9)


def test_nist_of_almost_nothing():
    for outputs, references in ([""], ["a"]), (["a"], [""]), (["a b"], ["c d"]), ([""], [""]):
        assert scoring.score("nist", outputs, references, bootstrap_samples=10)["nist"].value == 0
    # Nothing but alternatives: each reference matches a word of its own.
    alternatives = scoring.score("nist", ["a b c d e"], [["a", "b"]], tokenization="whitespace", bootstrap_samples=10)
    assert alternatives["nist"].value == pytest.approx(_nist_by_nltk(["a b c d e"], [["a", "b"]]), abs=1e-9) == 0.2
    result = scoring.score("nist", ["The cat."], ["The cat."])["nist"]
    assert result.details == {"hypothesis_length": 3, "reference_words": 3} and "tok:13a" in result.signature


def test_repetition_rate_excuses_what_the_reference_repeats():
    outputs = ["the cat the cat sat", "vous vous connectez", "a b c d", "a a"]
    references = ["the cat sat", "Vous vous connectez, vous vous", "a b c d", "a"]
    result = scoring.score(["repetition_rate"], outputs, references)["repetition_rate"]
    assert (result.value, result.lower_is_better) == (0.5, True)


def test_exact_match_ignores_how_much_white_space_stands_where():
    result = scoring.score(["exact_match"], [" a b ", "a \tb", "ab", "A b"], ["a b"] * 4)["exact_match"]
    assert result.details == {"n": 4, "matches": 2}


def test_token_accuracy_counts_positions_of_the_longer_text():
    # 2 of 3; 1 of 4, since what follows an extra token has lost its place; 0 of 2; nothing of nothing.
    outputs, references = ["a b c", "a b b c", "", ""], ["a x c", "a c d", "a b", ""]
    result = scoring.score(["token_accuracy"], outputs, references, tokenization="whitespace")["token_accuracy"]
    assert result.details == {"positions": 9, "equal": 3} and result.value == pytest.approx(1 / 3)
    # Words and punctuation where the text is not tokenized.
    text = scoring.score(["token_accuracy"], ["f(a)"], ["f(b)"])["token_accuracy"]
    assert text.details == {"positions": 4, "equal": 3}


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "x.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE city (name TEXT, people INT)")
    connection.executemany("INSERT INTO city VALUES (?, ?)", [("oslo", 7), ("rome", 28)])
    connection.commit()
    connection.close()
    return path


QUERIES = [
    # output, reference
    ("SELECT name FROM city WHERE people = 7", 'SELECT name FROM city WHERE name = "oslo" ;'),
    ("SELECT name FROM city", "SELECT name FROM city ORDER BY people DESC"),
    ("DROP TABLE city", "SELECT name FROM city"),
    ("SELECT name FROM city", "SELECT nothing FROM city"),
]


def test_execution_accuracy_runs_both_queries(database):
    outputs, references = (list(column) for column in zip(*QUERIES))
    result = scoring.score(["execution_accuracy"], outputs, references, database=database)["execution_accuracy"]
    assert result.details == {"n": 3, "correct": 1, "gold_failed": 1} and result.value == pytest.approx(1 / 3)
    compared = scoring.paired_bootstrap(["execution_accuracy"], references, outputs, references, database=database)
    assert compared["execution_accuracy"].difference == pytest.approx(2 / 3)
    with pytest.raises(scoring.ScoringError, match="evaluation.database"):
        scoring.score(["execution_accuracy"], outputs, references)


def test_tokenized_text_is_measured_by_its_tokens():
    source, target = "la_bel:_ci 9:_dn", "( to la_bel:_ci ) 9:_dn"
    options = {"sources": [source], "training_words": {"la_bel", "9:_dn"}, "bootstrap_samples": 0}
    result = scoring.score(["unseen_copies", "bleu"], [target], [target], tokenization="whitespace", **options)
    assert result["unseen_copies"].details == {"n": 1, "copied": 1}
    assert "tok:none" in result["bleu"].signature
    assert "tok:13a" in scoring.score(["bleu"], [target], [target])["bleu"].signature


def test_recipes_know_the_metrics_by_the_same_names():
    assert set(configs.METRICS) == set(scoring._FACTORIES) <= set(scoring.LABELS)
    # Measured elsewhere: see `pipeline.perplexity_of_text`.
    of_streams = {"perplexity_with_copies", "passage_perplexity", "validation_perplexity"}
    assert set(scoring.LABELS) - set(scoring._FACTORIES) == of_streams
    assert set(configs.METRICS) == set(vars(configs.ThresholdsConfig()))


def test_perplexity_per_token_and_per_word():
    """Two subwords a word and the end: what a model of words would have to reach is told by words alone."""
    references = ["le chat", "oui !"]
    given = {"scores": [(-6.0, 5), (-3.0, 4)], "bootstrap_samples": 50}
    found = scoring.score("perplexity,word_perplexity", ["", ""], references, **given)
    assert found["perplexity"].value == pytest.approx(np.exp(9 / 9)) and found["perplexity"].details["tokens"] == 9
    assert (
        found["word_perplexity"].value == pytest.approx(np.exp(9 / 6))
        and found["word_perplexity"].details["words"] == 6
    )
    assert found["perplexity"].lower_is_better and found["perplexity"].low < np.e < found["perplexity"].high
    worse = [(-9.0, 5), (-5.0, 4)]
    *_, compared = scoring.score_pair(
        "perplexity", ["", ""], ["", ""], references, scores=(given["scores"], worse), bootstrap_samples=50
    )
    assert compared["perplexity"].difference == pytest.approx(np.e - np.exp(14 / 9))
    assert scoring.perplexity_of(-1e9, 1) == np.inf and scoring.perplexity_of(0.0, 0) is None
    with pytest.raises(scoring.ScoringError, match="'perplexity' needs a model's probabilities"):
        scoring.score("perplexity", [""], ["a"])


def test_rouge_reads_other_languages():
    texts = ["élève à Noël"], ["eleve a noel"]
    assert scoring.score(["rouge1"], *texts, language="fr")["rouge1"].value == 0
    assert scoring.score(["rouge1"], ["東京の天気"], ["東京の空"], language="ja")["rouge1"].value > 50
    english = scoring.score(["rouge"], ["running dogs"], ["run dog"])
    assert list(english) == ["rouge1", "rouge2", "rougeL"]
    assert english["rouge1"].value == pytest.approx(100)
    assert english["rouge1"].details["recall"] == pytest.approx(100)


@pytest.mark.parametrize("language, name", [("en", "13a"), ("fr_CA", "13a"), ("zh-Hans", "zh"), ("ja", "char")])
def test_bleu_tokenizer(language, name):
    assert scoring.bleu_tokenizer(language) == name


def test_table_has_a_row_for_each_metric_and_a_column_for_each_system():
    references, outputs, worse = _corpus()
    names = ["bleu", "exact_match"]
    table = scoring.format_table(
        {
            "copy": scoring.score(names, outputs, references, bootstrap_samples=50),
            "plain": scoring.score(names, worse, references, bootstrap_samples=50),
        }
    )
    lines = table.splitlines()
    assert lines[0].split() == ["copy", "plain"]
    assert lines[2].startswith("BLEU") and lines[2].count("[") == 2
    assert lines[3].startswith("Exact match") and "n=60" in lines[3] and "%" in lines[3]


def _files(tmp_path, references="a b\nc d\n", hypotheses="a b\nc e\n"):
    (tmp_path / "references").write_text(references, encoding="utf-8")
    (tmp_path / "hypotheses").write_text(hypotheses, encoding="utf-8")
    return tmp_path / "references", tmp_path / "hypotheses"


def test_score_files(tmp_path):
    # A byte order mark, CRLF and a line separator inside a line must not shift the alignment.
    paths = _files(tmp_path, "\ufeffa b\r\nc\u2028d\r\n", "a b\nc\u2028d")
    results = scoring.score_files(*paths, metrics="exact_match, chrf", bootstrap_samples=20)
    assert list(results) == ["exact_match", "chrf"]
    assert results["exact_match"].value == 1


def test_score_files_reads_training_words(tmp_path):
    references, hypotheses = _files(tmp_path, "un Foo\n", "un Foo\n")
    (tmp_path / "sources").write_text("a Foo\n", encoding="utf-8")
    (tmp_path / "training").write_text("a\nun\n", encoding="utf-8")
    results = scoring.score_files(
        references, hypotheses, tmp_path / "sources", "unseen_copies", [tmp_path / "training"], bootstrap_samples=0
    )
    assert results["unseen_copies"].details == {"n": 1, "copied": 1}


@pytest.mark.parametrize(
    "keys, words",
    [
        ({"metrics": "bleu,blue"}, "no metric 'blue'; did you mean 'bleu'\\? The metrics are bleu, chrf, ter, rouge,"),
        ({"metrics": "xyz"}, "no metric 'xyz'; the metrics are bleu, chrf, ter, rouge,"),
        ({"metrics": []}, "No metric is named"),
        ({"metrics": "placeholder_fidelity"}, "'placeholder_fidelity' compares outputs with sources"),
        (
            {"metrics": "unseen_copies", "sources_path": "references"},
            "'unseen_copies' needs the words seen in training",
        ),
        ({"references_paths": "nothing"}, "references file .*nothing does not exist"),
        ({"references_paths": "."}, "cannot be read"),
        ({"hypotheses_path": "latin1"}, "latin1 is not UTF-8: line 2 cannot be read; convert"),
        ({"references_paths": "utf-16"}, "references file .*utf-16 is UTF-16 text, or no text at all: convert"),
        ({"references_paths": "utf-16-le"}, "references file .*utf-16-le is UTF-16 text, or no text at all: convert"),
        ({"hypotheses_path": "blank"}, "hypotheses file .*blank holds no text: all of its 2 lines are empty"),
        ({"metrics": "perplexity"}, "'perplexity' needs a model's probabilities, .* measure the model itself"),
        ({"hypotheses_path": "long"}, "long has 3 lines, but the references file .* has 2 lines"),
        ({"sources_path": "long"}, "sources file .*long has 3 lines"),
        ({"hypotheses_path": "empty"}, "empty is empty"),
        ({"tokenize": "nonsense"}, "no usable tokenizer 'nonsense'"),
    ],
)
def test_errors_are_one_sentence(tmp_path, keys, words):
    _files(tmp_path)
    (tmp_path / "latin1").write_bytes("good\nmauvais été\n".encode("latin-1"))
    (tmp_path / "long").write_text("a\nb\nc\n")
    (tmp_path / "empty").write_text("")
    (tmp_path / "blank").write_text(" \n\n")
    for encoding in ("utf-16", "utf-16-le"):  # with a byte order mark, and without
        (tmp_path / encoding).write_bytes("a b\nc d\n".encode(encoding))
    keys = {"references_paths": "references", "hypotheses_path": "hypotheses", **keys}
    keys = {key: tmp_path / value if key.endswith(("_path", "_paths")) else value for key, value in keys.items()}
    with pytest.raises(scoring.ScoringError, match=words) as caught:
        scoring.score_files(**keys)
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(scoring.ScoringError, match="1 hypotheses for 2 references"):
        scoring.score(["bleu"], ["a"], ["a", "b"])
    with pytest.raises(scoring.ScoringError, match="empty"):
        scoring.score(["bleu"], [], [])


def test_empty_outputs_score_zero():
    results = scoring.score(["bleu", "chrf", "rouge"], ["", ""], ["a b c d", "e f g h"], bootstrap_samples=20)
    assert all(result.value == 0 for result in results.values())


def test_tensorflow_is_not_imported():
    code = (
        "import sys, pipeline.scoring as s; s.score(s.METRICS[:6], ['a'], ['a']); sys.exit('tensorflow' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=pathlib.Path(__file__).parents[2])


def _several(count=60):
    """Returns outputs and their references, one to three a segment."""
    references, outputs, others = _corpus(count)
    return outputs, [
        texts[: 1 + index % 3] for index, texts in enumerate(zip(references, others, reversed(references)))
    ]


@pytest.mark.parametrize(
    "name, oracle", [("bleu", sacrebleu.corpus_bleu), ("chrf", sacrebleu.corpus_chrf), ("ter", sacrebleu.corpus_ter)]
)
def test_several_references_equal_sacrebleu(name, oracle):
    outputs, references = _several()
    streams = [[texts[index] if index < len(texts) else None for texts in references] for index in range(3)]
    result = scoring.score([name], outputs, references, bootstrap_samples=0)[name]
    assert result.value == pytest.approx(oracle(outputs, streams).score, abs=1e-9)
    assert "nrefs:var" in result.signature
    everywhere = [[one, other] for one, other in zip(streams[0], reversed(streams[0]))]
    result = scoring.score([name], outputs, everywhere, bootstrap_samples=0)[name]
    assert result.value == pytest.approx(oracle(outputs, list(zip(*everywhere))).score, abs=1e-9)
    assert "nrefs:2" in result.signature


def test_several_references_of_the_other_metrics():
    from rouge_score import rouge_scorer

    outputs, references = _several()
    scorer = rouge_scorer.RougeScorer(["rouge2", "rougeL"], use_stemmer=True)
    expected = [scorer.score_multi(texts, output) for output, texts in zip(outputs, references)]
    found = scoring.score(["rouge2", "rougeL", "exact_match"], outputs, references, bootstrap_samples=0)
    for name in ("rouge2", "rougeL"):
        mean = sum(scores[name].fmeasure for scores in expected) / len(expected)
        assert found[name].value == pytest.approx(100 * mean, abs=1e-9)
    equal = sum(output in texts for output, texts in zip(outputs, references))
    assert found["exact_match"].details == {"n": 60, "matches": equal}

    options = {"bootstrap_samples": 0, "tokenization": "whitespace"}
    accuracy = scoring.score("token_accuracy", ["a b c"], [["x y", "a b d e", "a x c"]], **options)["token_accuracy"]
    assert accuracy.details == {"positions": 3, "equal": 2}
    stutters = scoring.score("repetition_rate", ["a a", "a a"], [["a", "b b"], ["a", "b"]], **options)
    assert stutters["repetition_rate"].details == {"n": 2, "repeating": 1}
    copies = scoring.score("unseen_copies", ["x y"], [["x", "z y"]], ["x y z"], training_words=(), **options)
    assert copies["unseen_copies"].details == {"n": 3, "copied": 2}


def test_execution_accuracy_takes_any_reference(database):
    right, wrong, broken = "SELECT 1", "SELECT 2", "SELECT nothing FROM city"
    references = [[wrong, right], [broken, right], [broken, wrong], [broken, broken]]
    result = scoring.score("execution_accuracy", [right] * 4, references, database=database)["execution_accuracy"]
    assert result.details == {"n": 3, "correct": 2, "gold_failed": 1}


def test_a_segment_without_references_is_refused():
    with pytest.raises(scoring.ScoringError, match="Segment 1 has no reference"):
        scoring.score("bleu", ["a", "b"], [["a"], []])


def _published():
    """The rows of the table of known scores, but those of other implementations."""
    if not CHECKS.is_dir():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"the known scores are not here: {CHECKS}"))]
    lines = (CHECKS / "expected_scores.tsv").read_text(encoding="utf-8").splitlines()
    header = lines[1].split("\t")
    rows = [dict(zip(header, line.split("\t"))) for line in lines[2:]]
    return [pytest.param(row, id=f"{row['set']}-{row['hypotheses']}") for row in rows if row["origin"] != "info"]


@pytest.mark.parametrize("row", _published())
def test_published_scores_are_found_again(row, tmp_path):
    from pipeline import cli

    folder = CHECKS / row["set"]
    reference, *more = row["references"].removesuffix(", four references").split(' with "@@ " removed')
    paths = [folder / reference]
    if " to " in reference:
        paths = sorted((folder / row["hypotheses"]).parent.glob("set1.ref*"))
        assert len(paths) == 4
    names = row["metric"].split(",")[0].replace(" ", "_").lower()
    arguments = ["--metrics", "rouge" if names.startswith("rouge") else names, "--samples", "0"]
    if "tokenize" in row["metric"]:
        arguments += ["--tokenize", row["metric"].split("tokenize ")[1].split(",")[0]]
    if more:
        arguments += ["--remove", "@@ "]
    files = ["--hypotheses", str(folder / row["hypotheses"]), "--references", *map(str, paths)]
    assert cli.main(["score", *files, *arguments, "--json", str(tmp_path / "facts.json")]) == 0
    facts = json.loads((tmp_path / "facts.json").read_text(encoding="utf-8"))
    found = [fact["value"] * (100 if fact["unit"] == "share" else 1) for fact in facts.values()]
    expected = row["value"].split()
    if row["origin"] == "pub":
        assert [f"{value:.2f}" for value in found] == expected
    else:
        assert found == pytest.approx([float(value) for value in expected], abs=0.05)


def test_texts_to_remove_and_several_files(tmp_path):
    paths = _files(tmp_path, "a@@ b c\nd e\n", "ab c\nx@@ y\n")
    (tmp_path / "second").write_text("\nxy\n")
    result = scoring.score_files([paths[0], tmp_path / "second"], paths[1], metrics="exact_match", remove="@@ ")
    assert result["exact_match"].details == {"n": 2, "matches": 2}
    assert "nrefs:var" in result["exact_match"].signature
    (tmp_path / "second").write_text("one\n")
    with pytest.raises(scoring.ScoringError, match="references file .*second has 1 line, but .*references has 2 lines"):
        scoring.score_files([paths[0], tmp_path / "second"], paths[1])


def test_a_pair_is_scored_as_each_alone_from_one_reading(monkeypatch):
    references = [f"the file {number} is here" for number in range(30)]
    good, bad = references[:25] + ["x"] * 5, ["the file"] * 30
    names, settings = ["bleu", "exact_match", "nist"], {"bootstrap_samples": 40}
    expected = (
        scoring.score(names, good, references, **settings),
        scoring.score(names, bad, references, **settings),
        scoring.paired_bootstrap(names, good, bad, references, **settings),
    )
    read = []
    statistics = scoring.ExactMatch.statistics
    monkeypatch.setattr(
        scoring.ExactMatch, "statistics", lambda self, *segment: read.append(segment) or statistics(self, *segment)
    )
    assert scoring.score_pair(names, good, bad, references, **settings) == expected
    assert len(read) == 60
    without, _, compared = scoring.score_pair(
        names, good, bad, references, test="randomisation", trials=30, bootstrap_samples=0
    )
    assert without["bleu"].low is None and without["bleu"].value == expected[0]["bleu"].value
    assert compared["bleu"].low is None and compared["bleu"].p_value < 0.1


def test_breakdowns_are_tables_of_what_has_words():
    references = ["a b c d", "a " * 12, "b b d e"]
    counts = {"a": 5, "b": 1}
    names = ["bleu_by_length", "word_f1_by_frequency", "bleu"]
    settings = {"training_words": counts, "bootstrap_samples": 0}
    results = {
        "one": scoring.score(names, references, references, **settings),
        "two": scoring.score(names, ["a", "a", "b"], references, **settings),
    }
    said = scoring.format_breakdowns(results)
    lines = [line.split() for line in said.splitlines() if not line.startswith("---")]
    assert lines[0] == [*"BLEU by words of the reference".split(), "one", "two", "reference", "words"]
    assert [line[0] for line in lines[1:3]] == ["0-9", "10-19"]
    assert lines[1][1] == lines[2][1] == "100.00" and lines[1][-1] == "8" and lines[2][-1] == "12"
    frequency = lines[lines.index([]) + 2 :]
    assert [line[0] for line in frequency] == ["0", "1", "5-9"]
    assert frequency[0] == ["0", "100.0", "%", "0.0", "%", "4"]
    assert scoring.format_breakdowns({"one": scoring.score("bleu", references, references, bootstrap_samples=0)}) == ""
