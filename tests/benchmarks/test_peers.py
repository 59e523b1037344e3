"""What the comparison with peers computes: ratios, floors, tables and pictures, without a peer."""

import threading
import types
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.peers import (
    corpus,
    decoding,
    floors,
    lengths,
    machine,
    opennmt_py,
    ours_model,
    picture,
    processes,
    rounds,
    training,
)
from benchmarks.peers.job import Job


def test_programs_take_turns_and_the_warm_up_does_not_count():
    asked = []

    def measure(name):
        asked.append(name)
        return {"ms": len(asked)}

    found = rounds.interleave(["ours", "peer"], 2, measure)

    assert asked == ["ours", "peer"] * 3
    assert found == [{"ours": {"ms": 3}, "peer": {"ms": 4}}, {"ours": {"ms": 5}, "peer": {"ms": 6}}]


def test_ratios_are_of_one_round():
    found = [
        {"ours": {"ms": ours}, "peer": {"ms": peer}}
        for ours, peer in ((10, 80), (20, 200), (10, 90))
    ]

    figures = rounds.figure(found, "ms", "peer")

    assert figures["ours"]["median"] == 10
    assert (figures["peer"]["low"], figures["peer"]["high"]) == (80, 200)
    # Not 90 / 10, the ratio of the medians, by accident: 8, 10 and 9.
    assert figures["ours"]["ratio"]["values"] == [8, 10, 9]
    assert figures["peer"]["ratio"]["median"] == 1


def test_rates_are_better_when_larger():
    found = [{"ours": {"rate": 30}, "peer": {"rate": 10}}]
    assert (
        rounds.figure(found, "rate", "peer", lower_is_better=False)["ours"]["ratio"]["median"] == 3
    )


def test_spread_as_text():
    assert (
        rounds.with_spread(rounds.spread([1234.5, 1000.0, 2000.0]), 1)
        == "1,234.5 (1,000.0 to 2,000.0)"
    )


def test_operations_and_bytes_of_a_product():
    product = floors.Product("any", 2, 3, 5, 7)
    assert product.operations == 2 * 2 * 3 * 5 * 7
    assert product.bytes == 4 * (2 * 3 + 3 * 5 + 2 * 5) * 7


def test_the_floor_is_the_slower_of_two_limits():
    products = [floors.Product("any", 1, 1000, 1000)]
    by_memory = floors.seconds(products, {"operations": 1e12, "bytes": 1e6})
    by_operations = floors.seconds(products, {"operations": 1e6, "bytes": 1e12})
    assert by_memory == pytest.approx(products[0].bytes / 1e6)
    assert by_operations == pytest.approx(products[0].operations / 1e6)


def test_operations_of_decoding():
    job = Job(vocabulary=100, embedding=3, hidden=4, beam=5, length=6)
    products = {product.name: product for product in floors.decoding_products(job, 2, 7)}
    # 2 sources x 5 hypotheses x 6 steps, times a 4 x 100 matrix.
    assert products["vocabulary"].operations == 2 * (2 * 5 * 6) * 4 * 100
    # Each hypothesis looks at 7 positions of 4 numbers.
    assert products["attention's scores"].operations == 2 * (2 * 5 * 6) * 7 * 4
    # Two directions of half the size.
    assert products["encoder's inputs"].operations == 2 * (2 * 7) * 3 * (3 * 2) * 2


def test_attention_projects_the_source_once_and_the_query_only_where_it_must():
    def named(attention):
        job = Job(vocabulary=100, embedding=3, hidden=4, beam=5, length=6, attention=attention)
        return {product.name: product.operations for product in floors.decoding_products(job, 2, 7)}

    assert named("bilinear")["attention's keys"] == 2 * (2 * 7) * 4 * 4
    assert "attention's query" not in named("bilinear")
    assert named("additive")["attention's query"] == 2 * (2 * 5 * 6) * 4 * 4
    assert "attention's keys" not in named("dot")


def test_training_needs_three_times_forward_and_its_vocabulary_is_one_product():
    job = Job(vocabulary=100, embedding=3, hidden=4)
    products = {product.name: product for product in floors.training_products(job, 8, 5, 6)}
    assert products["vocabulary"].operations == 3 * 2 * (8 * 6) * 4 * 100
    assert products["vocabulary"].times == 3
    assert products["GRU, state"].operations == 3 * 2 * (8 * 6) * 4 * 12


def test_tables_have_a_line_for_each_program():
    found = [
        {
            name: {"ms": ms, "cpu_ms": 2 * ms, "peak_bytes": 5e8}
            for name, ms in (("ours", 10.0), ("opennmt_py", 80.0))
        }
    ]
    one = decoding.summarize(1, found, 5.0, "opennmt_py")
    ours, peer = decoding.rows([one])
    assert ours.labels == {"batch": "1", "program": "ours"}
    shown = {name: spread and spread.median for name, spread in ours.figures.items()}
    assert shown == {
        "ms": 10.0,
        "times": 8.0,
        "floor": 0.5,
        "cpu_ms": 20.0,
        "bleu": None,
        "words": None,
        "peak_mb": 500.0,
    }
    assert peer.labels["program"] == "OpenNMT-py 3.5.1"

    facts = {
        "source_rate": 10.0,
        "pairs_an_update": 64,
        "losses": [[40, 5.5]],
        "eval_losses": [[20, 6.25]],
        "parameters": 1000,
        "peak_bytes": 1e9,
    }
    figures = rounds.figure([{"ours": {"rate": 100.0}}], "rate", "ours", lower_is_better=False)
    [row] = training.rows(figures, {"ours": facts}, 400.0)
    shown = {name: spread and spread.median for name, spread in row.figures.items()}
    assert shown == {
        "rate": 100.0,
        "source_rate": 10.0,
        "times": 1.0,
        "floor": 0.25,
        "pairs_an_update": 64,
        "updates": 40,
        "loss": 5.5,
        "eval_loss": 6.25,
        "seconds_to_loss": None,
        "times_to_loss": None,
        "lead": None,
        "parameters": 1000,
        "peak_mb": 1000.0,
    }


def test_outputs_of_another_length_stop_the_comparison():
    lengths.check_lengths("ours", [20, 20], 20)
    with pytest.raises(
        lengths.WrongLength, match="ours gave outputs of 19 to 20 tokens; all must have 20"
    ):
        lengths.check_lengths("ours", [20, 19], 20)


@given(number=st.integers(0, 40), size=st.integers(1, 8), copies=st.integers(1, 5))
def test_batches_are_shared_out_and_joined_in_their_order(number, size, copies):
    texts = list(range(number))
    shares = processes.share_batches(texts, size, copies)
    assert len(shares) == copies
    # Whole batches, and no copy has two more than another.
    batches = [-(-len(share) // size) for share in shares]
    assert sum(batches) == -(-number // size) and max(batches) - min(batches) <= 1
    assert processes.join_batches(shares, size) == texts


def test_copies_decode_at_the_same_time(monkeypatch, tmp_path):
    started, both = [], threading.Barrier(2, timeout=60)

    class Fake:
        def __init__(self, python, module, threads, log, cores):
            started.append((threads, log.name, tuple(cores)))

        def ask(self, task, texts=(), **arguments):
            if task == "make":
                return {"model": "here"}
            # A batch for each; or one for the first, while the other would find nothing to do.
            if texts != list("ab"):
                both.wait()
            assert task == "load" or texts
            outputs = [text.upper() for text in texts]
            return {
                "cpu_seconds": 2.0,
                "peak_bytes": 10,
                "outputs": outputs,
                "lengths": [1] * len(texts),
            }

        def __exit__(self, *exception):
            started.pop()

    monkeypatch.setattr(processes, "Program", Fake)
    monkeypatch.setattr(processes, "first_cores", lambda number: [3, 5][:number])
    with processes.Copies("python", "peer", 2, tmp_path / "peer.log") as copies:
        assert started == [(1, "peer.0.log", (3,)), (1, "peer.1.log", (5,))]
        assert copies.ask("make", job="") == {"model": "here"}
        copies.ask("load", job="")
        answer = copies.ask("decode", texts=list("abcdefg"), batch=2)
        assert copies.ask("decode", texts=list("ab"), batch=2)["outputs"] == list("AB")
    assert answer["outputs"] == list("ABCDEFG") and answer["lengths"] == [1] * 7
    assert (answer["cpu_seconds"], answer["peak_bytes"]) == (4.0, 20)
    assert answer["seconds"] > 0
    assert not started


def test_single_sentences_are_not_decoded_side_by_side(monkeypatch):
    class Fake:
        def ask(self, task, texts, **more):
            answers = {"outputs": texts, "lengths": [20] * len(texts)}
            return {**answers, "seconds": 1.0, "cpu_seconds": 1.0, "peak_bytes": 1}

    monkeypatch.setattr(corpus, "read", lambda *_: [("a", "b")] * 8)
    options = types.SimpleNamespace(data=None, sentences=8, free=False, rounds=1)
    programs = {"ours": Fake(), "ours_side_by_side": Fake()}
    for batch, names in ((1, {"ours"}), (4, {"ours", "ours_side_by_side"})):
        found, outputs, _ = decoding.measure_batch(programs, batch, Job(), options)
        assert set(found[0]) == set(outputs) == names


def test_picture(tmp_path):
    figures = {
        "ours": rounds.spread([10.0, 11.0, 12.0]),
        "peer <1>": rounds.spread([90.0, 100.0, 95.0]),
    }
    figures["ours_too"] = figures["ours"]
    picture.write(tmp_path / "bars.svg", "Milliseconds", [{"title": "Batch 1", "figures": figures}])
    root = ElementTree.parse(tmp_path / "bars.svg").getroot()
    bars = [one for one in root if one.tag.endswith("rect")]
    widths = [float(bar.get("width")) for bar in bars]
    assert widths[1] / widths[0] == pytest.approx(95 / 11, rel=0.02)
    assert "peer <1>" in [one.text for one in root]
    ours, peer, too = [bar.get("fill") for bar in bars]
    assert ours == too != peer


def test_sentences_are_the_same_for_all_and_short_ones_first():
    pairs = [("a b c", ""), ("a", ""), ("a b", "")]
    assert corpus.sentences(pairs, 4) == [1, 2, 0, 0]


def test_vocabularies_are_filled_up_to_the_size():
    assert corpus.frequent_words(["b a a", "c b a"], 2) == ["a", "b"]
    assert corpus.frequent_words(["a"], 3) == ["a", "unused0", "unused1"]


def test_reports_of_a_training():
    log = (
        "[2026-01-01 00:00:00,000 INFO] Step  1/    1; acc: 0.0; ppl: 19793.7; xent: 9.9; lr: "
        "0.00100; sents:      64; "
        "bsz:  499/ 814/64;   6/ 10 tok/s;     78 sec;\n"
        "[2026-01-01 00:00:30,000 INFO] Validation perplexity: 7.38906\n"
        "[2026-01-01 00:01:00,000 INFO] Saving checkpoint\n"
    )
    assert opennmt_py.read_evaluations(log) == [pytest.approx(2.0, abs=1e-5)]
    assert opennmt_py.read_reports(log) == [
        {"update": 1.0, "loss": 9.9, "pairs": 64.0, "source_rate": 6.0, "target_rate": 10.0}
    ]


def test_the_copy_generator_is_moved_to_where_it_is_looked_for():
    checkpoint = {
        "model": {"encoder.weight": 1},
        "generator": {"linear.weight": 2, "linear_copy.bias": 3},
    }
    mended = opennmt_py.mend(checkpoint)
    assert mended["model"] == {
        "encoder.weight": 1,
        "generator.linear.weight": 2,
        "generator.linear_copy.bias": 3,
    }
    assert mended["generator"] == {}


def test_a_transformer_has_its_own_products():
    job = Job(
        vocabulary=100,
        hidden=8,
        body="transformer",
        layers=2,
        heads=2,
        feed_forward=16,
        beam=5,
        length=6,
    )
    products = floors.decoding_products(job, 3, 7)
    feed = [product for product in products if product.name == "feed-forward, in"]
    # Once over the source's tokens, and once a step over the hypotheses.
    assert [product.operations for product in feed] == [
        2 * (3 * 7) * 8 * 16 * 2,
        2 * (3 * 5) * 8 * 16 * 2 * 6,
    ]
    # All heads together see the whole width: a position of its source for each of the 6 steps.
    scores = [
        product
        for product in products
        if product.name == "attention's scores" and product.columns == 7
    ]
    assert scores[-1].operations == 2 * (3 * 5) * 7 * 8 * 2 * 6


def test_busy_machines_are_called_busy():
    facts = {"processor": "any", "cores": 2, "memory_gb": 8, "system": "any", "load": 3.0}
    assert "busy (load 3.0)" in machine.sentence(facts, 2)
    assert "busy" not in machine.sentence({**facts, "load": 0.1}, 2)


def test_the_last_checkpoint_is_taken(tmp_path):
    for updates in (80, 1170, 390):
        opennmt_py.checkpoint_path(tmp_path, updates).touch()
    assert decoding.last_checkpoint(tmp_path) == opennmt_py.checkpoint_path(tmp_path, 1170)
    with pytest.raises(processes.ProgramError, match=r"run benchmarks\.peers\.training first"):
        decoding.last_checkpoint(tmp_path / "absent")


@pytest.mark.parametrize(
    "more, sentence",
    [
        (["--free"], "--free needs trained models"),
        (["--trained", "out"], "--output must be another folder"),
        (["--trained", "t", "--programs", "ours,ctranslate2"], "does not train ctranslate2"),
        (["--programs", "ours,theirs"], "no program is called theirs"),
    ],
)
def test_comparisons_that_cannot_be_made(monkeypatch, capsys, more, sentence):
    monkeypatch.setattr("sys.argv", ["decoding", "--data", "d", "--output", "out", *more])
    with pytest.raises(SystemExit):
        decoding.parse()
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("body", ["rnn", "transformer"])
def test_our_recipe_of_a_job_has_the_peers_training(body):
    """Whatever the recipe that it is made from has been tuned to."""
    recipe = ours_model.recipe(Job(body=body))
    assert recipe.model.body == body and recipe.model.dropout == 0.2
    assert recipe.model.initial_range == (0.1 if body == "rnn" else 0)
    training = recipe.training
    assert (training.label_smoothing, training.consistency_weight) == (0, 0)
    assert (training.select_by, training.average) == ("loss", "none")


def test_outputs_may_end_by_themselves():
    job = Job()
    forced, free = (ours_model.recipe(job, forced=forced).decoding for forced in (True, False))
    assert (forced.min_length, forced.max_length_offset) == (job.length, job.length)
    assert (free.min_length, free.max_length_offset) == (0, job.longest)
