"""The peer that is trained to convergence, without the peer."""

import types

import pytest

from benchmarks.peers import converged, corpus


def test_a_share_of_the_corpus_is_held_out():
    pairs = [(str(number), "") for number in range(7)]
    held, others = corpus.held_out(pairs, 3)
    assert [source for source, _ in held] == ["0", "3", "6"]
    assert sorted(held + others) == pairs


class Translator:
    """Answers as a peer would; its translations say how they were made."""

    def __init__(self):
        self.alpha = None

    def ask(self, task, **arguments):
        if task == "load":
            self.alpha = arguments["alpha"]
            return {}
        return {"outputs": [f"{text} {self.alpha}" for text in arguments["texts"]]}


def test_a_peers_outputs_are_in_the_order_of_their_texts(tmp_path):
    texts = ["a b c", "a", "a b"]
    outputs = converged.outputs_of(Translator(), "model", tmp_path, 0.5, texts)
    assert outputs == ["a b c 0.5", "a 0.5", "a b 0.5"]


def test_trainings_of_a_peer_are_a_row():
    trained = [
        {
            "seed": seed,
            "minutes": 10.0 * seed,
            "best_pass": 9 + seed,
            "alpha": 1.0,
            "words": 11.0,
            "bleu": 30.0 + seed,
            "chrf": 32.0,
            "version": "x",
        }
        for seed in (1, 2, 3)
    ]
    options = types.SimpleNamespace(copying=False, passes=14)
    row = converged.row(trained, options)
    assert row.labels["program"] == "OpenNMT-py 3.5.1, label smoothing, no copying"
    assert (row.labels["seeds"], row.labels["passes"]) == ("3", "14")
    bleu = row.figures["bleu"]
    assert (bleu.median, bleu.low, bleu.high) == (32.0, 31.0, 33.0)
    assert converged.score(["a b"], ["a b"])["chrf"] == pytest.approx(100.0)
