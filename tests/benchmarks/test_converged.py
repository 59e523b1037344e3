"""The peer that is trained to convergence, without the peer."""

import pytest

from benchmarks.peers import converged, corpus


def test_a_share_of_the_corpus_is_held_out():
    pairs = [(str(number), "") for number in range(7)]
    held, others = corpus.held_out(pairs, 3)
    assert [source for source, _ in held] == ["0", "3", "6"]
    assert sorted(held + others) == pairs


class Peer:
    """Answers as the peer would; its translations say how they were made."""

    def __init__(self):
        self.alpha = None
        self.trainings = []

    def ask(self, task, **arguments):
        if task == "converge":
            self.trainings.append(arguments["seed"])
            return {"model": "best.pt", "best_pass": 3, "seconds": 60.0, "version": "x"}
        if task == "load":
            self.alpha = arguments["alpha"]
            return {}
        return {"outputs": [f"{text} {self.alpha}" for text in arguments["texts"]]}


def test_translations_are_in_the_order_of_their_texts(tmp_path):
    texts = ["a b c", "a", "a b"]
    outputs = converged.translations(Peer(), "model", tmp_path, 0.5, texts)
    assert outputs == ["a b c 0.5", "a 0.5", "a b 0.5"]


def test_a_training_that_has_ended_is_not_repeated(tmp_path):
    peer, folder = Peer(), tmp_path / "seed-1"
    settings = {"data": "d", "passes": 2, "seed": 1, "copying": False}
    first = converged.trained(peer, folder, settings)
    assert converged.trained(peer, folder, settings) == first
    assert peer.trainings == [1]
    # With other settings it is another training.
    converged.trained(peer, folder, {**settings, "copying": True})
    assert peer.trainings == [1, 1]


def test_held_out_pairs_choose_the_length_normalisation():
    held = [("a b c d", "a b c d 0.5")]
    development = [("e f g h", "e f g h 1.0"), ("e f g", "e f g 0.5")]

    def translate(alpha, texts):
        return [f"{text} {alpha}" for text in texts]

    scores = converged.scores_of(translate, held, development)
    assert scores["alpha"] == 0.5 and scores["words"] == 4.5
    outputs = translate(0.5, [source for source, _ in development])
    expected = converged.score(outputs, [target for _, target in development])
    assert (scores["bleu"], scores["chrf"]) == (expected["bleu"], expected["chrf"])


def test_trainings_with_several_seeds_are_a_row():
    trainings = [
        (
            {"best_pass": 9 + seed, "seconds": 600.0 * seed},
            {"alpha": 1.0, "words": 11.0, "bleu": 30.0 + seed, "chrf": 32.0},
        )
        for seed in (1, 2, 3)
    ]
    row = converged.row(trainings, copying=False, passes=14)
    assert row.labels["program"] == "OpenNMT-py 3.5.1, label smoothing, no copying"
    assert (row.labels["seeds"], row.labels["passes"]) == ("3", "14")
    bleu = row.figures["bleu"]
    assert (bleu.median, bleu.low, bleu.high) == (32.0, 31.0, 33.0)
    assert row.figures["minutes"].median == pytest.approx(20.0)
