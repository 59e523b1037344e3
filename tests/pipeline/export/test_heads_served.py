"""Each head, and each body, from training to an answer over gRPC."""

import itertools
import os

import pytest

from pipeline.recipes.choices import HEADS, LEXICON_HEADS
from tests.pipeline.export.tiny_models import BEAM, export_tiny, make_recipe

pytestmark = pytest.mark.slow

NAMES = ["ada", "bob", "cleo", "dan", "eve", "fay", "gus", "hal", "ida", "jon"]
SETTINGS = {
    "span_copy": {"max_span": 3},
    "pointer_softmax": {"inverse_temperature": 2.0, "switch_activation": "noisy_tanh"},
}


@pytest.mark.parametrize(
    "head,body",
    # The pointer-generator's recurrent body goes the whole way in tests/end_to_end.
    [
        (head, "transformer" if head == "pointer_generator" else "rnn")
        for head in HEADS
        if head != "softmax"
    ],
)
def test_a_head_answers_over_grpc(head, body, tmp_path):
    """What the network says is not learned here, but every part of an answer is there and fits the
    others.
    """
    from serving.client import Client
    from serving.server import ModelServer, ServerSettings

    model = {"head": head, "body": body, **SETTINGS.get(head, {})}
    if body == "transformer":
        model.update(encoder_layers=1, attention_heads=2, feed_forward_size=48)
    recipe = make_recipe(
        model=model,
        training={"epochs": 1},
        decoding={**BEAM, "batch_buckets": [1], "min_length": 2, "max_length_offset": 2},
        lexicon={"kind": "learned"},
    )
    rows = [(f"greet {a} and {b} now", f"{b} and {a}") for a, b in itertools.permutations(NAMES, 2)]
    # Each compiles a search of its own: one head shows that the n best begin with the best.
    ranks = head == "span_copy"
    signatures = ("serving_default", "score", *(["n_best"] if ranks else []))
    lexicon = (
        {"and": {"and": 1.0}, "greet": {"and": 0.5, "hail": 0.5}} if head in LEXICON_HEADS else None
    )
    # Trained, because an untrained network may say special tokens, which no text holds.
    model = export_tiny(
        tmp_path, recipe, rows, ["greet", "and", "now"], ["and"], signatures, lexicon
    )
    versions = tmp_path / "versions"
    versions.mkdir()
    os.rename(model, versions / "1")
    source = "greet zoe and yan now"
    words = source.split()
    with (
        ModelServer({"tiny": str(versions)}, ServerSettings(port=0)) as server,
        Client(server.address) as client,
    ):
        (answer,) = client.predict(source)
        assert len(answer.tokens) >= 2 and answer.text == " ".join(
            token.text for token in answer.tokens
        )
        for token in answer.tokens:
            assert token.text in words  # the target's vocabulary has but `and`
            if token.copied_from is None:
                assert token.text == "and" and token.copy_probability <= 0.5
            else:
                assert (
                    token.text == token.source_token == words[token.copied_from]
                    and token.copy_probability > 0.5
                )
        if ranks:
            best, second = client.n_best(source)[0]
            assert best.text == answer.text and best.score >= second.score
        (scored,) = client.score(source, "yan and zoe")
        assert scored.token_count == 4 and -100 < scored.log_probability < 0


def test_a_model_that_composes_words_of_characters(tmp_path):
    """Words that the vocabulary lacks differ by how they are written;
    with looked-up words alone they would be the same.
    """
    from pipeline.export.served_model import ServedModel

    recipe = make_recipe(
        model={
            "head": "softmax",
            "composition": "lookup+ngram",
            "word_length": 5,
            "ngram_buckets": 211,
        },
        decoding={"batch_buckets": [2], "length_buckets": [8, 16], "max_length_offset": 2},
    )
    rows = [
        (f"greet {a} and {b} now", f"{b} and {a}") for a, b in itertools.permutations(NAMES[:4], 2)
    ]
    signatures = ("serving_default", "score")
    folder = export_tiny(tmp_path, recipe, rows, ["greet", "and"], ["and"], signatures, train=False)
    model = ServedModel(folder)
    sources = [
        "greet zoe and yan now",
        "greet alexandra and yan now",
        "greet zoe and yan now and then and now and",
        "%s",
    ]
    answers = model.predict(sources)
    assert [answer["source_tokens"][: len(s.split())] for answer, s in zip(answers, sources)] == [
        s.split() for s in sources
    ]
    scores = [answer["score"] for answer in answers]
    assert len(set(scores)) == 4
    # Each alone, hence in another bucket, is answered as it is beside the others.
    for source, score in zip(sources, scores):
        assert model.predict([source])[0]["score"] == pytest.approx(score, abs=1e-5)


def test_a_model_that_draws(tmp_path):
    """With a temperature the answers are drawn:
    differently for each place, the same for the same request, compiled or not.
    """
    import tensorflow as tf

    from pipeline.export.served_model import ServedModel

    recipe = make_recipe(
        model={"head": "joint_copy"},
        decoding={
            **{"beam_size": 1, "n_best": 4, "temperature": 2.0, "top_k": 5, "top_p": 0.95},
            **{
                "batch_buckets": [2],
                "length_buckets": [16],
                "min_length": 2,
                "max_length_offset": 4,
            },
        },
    )
    rows = [
        (f"greet {a} and {b} now", f"{b} and {a}") for a, b in itertools.permutations(NAMES[:4], 2)
    ]
    signatures = ("serving_default", "serving_default_no_xla", "n_best")
    folder = export_tiny(
        tmp_path, recipe, rows, ["greet", "and", "now"], ["and"], signatures, train=False
    )
    model = ServedModel(folder)
    source = "greet zoe and yan now"
    (first,) = model.predict([source])
    assert model.predict([source])[0]["text"] == first["text"]
    assert model.predict([source], signature="serving_default_no_xla")[0]["text"] == first["text"]
    drawn = tf.saved_model.load(str(folder)).signatures["n_best"](source=tf.constant([source]))
    texts = [text.decode() for text in drawn["text"].numpy()[0]]
    assert texts[0] == first["text"] and len(texts) == 4 and len(set(texts)) > 1
    for token, place in zip(first["tokens"], first["copied_from"]):
        assert place == -1 or token == source.split()[place]
