"""An exported language model:
its signatures, alone and behind the server, against the model itself.
"""

import dataclasses
import json

import numpy as np
import pytest

from pipeline.recipes import sections
from pipeline.recipes.recipe import Recipe, recipe_from_dict
from pipeline.text import tokenization
from tests.keras_models import sentinel_oracle
from tests.pipeline.export.tiny_models import warmup_signatures

pytestmark = pytest.mark.slow

WORDS = ["mr.", "smith", "said", "that", "<unk>", "is", "here"]
VOCABULARY = [*tokenization.SPECIAL_TOKENS, *WORDS]
TEXTS = ["mr. smith said\nthat", "mr. Fernández said that mr."]


def recipe(**settings):
    options = {"window": 4, "continuation_tokens": 5, **settings}
    return Recipe(
        name="tiny_lm",
        task="language_model",
        data=sections.DataConfig(train_files=("t",), eval_files=("e",), tokenization="whitespace"),
        model=sections.ModelConfig(head="pointer_sentinel"),
        decoding=sections.DecodingConfig(batch_buckets=(1, 2), length_buckets=(6, 12)),
        language_model=sections.LanguageModelConfig(**options),
    )


@pytest.fixture(scope="module")
def model():
    from keras_models.models import LanguageModel
    from tests.keras_models.backends import randomize

    made = LanguageModel(len(VOCABULARY), window=4, embedding_size=4, hidden_size=6, dropout=0.0)
    randomize(made, 1, 0.8)
    return made


@pytest.fixture(scope="module")
def transform_output(tmp_path_factory):
    """What Transform leaves, without running it: a graph, with the vocabulary among its assets."""
    import tensorflow as tf

    from pipeline.features import language_model_preprocessing, lookup_tables

    folder = tmp_path_factory.mktemp("transform")
    path = folder / language_model_preprocessing.VOCABULARY_FILE
    path.write_text("".join(f"{word}\n" for word in VOCABULARY), encoding="utf-8")
    # As in a pipeline, the graph has inputs that no served text has.
    types = {"text": tf.string, "context": tf.int64, "order": tf.int64, "file": tf.string}
    specs = {name: tf.TensorSpec([None, 1], dtype) for name, dtype in types.items()}

    class Transform(tf.Module):
        transform_savedmodel_dir = str(folder / "graph")

        def __init__(self):
            super().__init__()
            self.table = lookup_tables.vocabulary_table(str(path))

        @tf.function(input_signature=[specs])
        def transform_fn(self, raw):
            features = language_model_preprocessing.make_features(
                tf.reshape(raw["text"], [-1]),
                self.table,
                tokenization.Tokenizer("whitespace"),
                "<unk>",
            )
            return {name: value.to_sparse() for name, value in features.items()}

    transform = Transform()
    tf.saved_model.save(transform, Transform.transform_savedmodel_dir)
    return transform


@pytest.fixture(scope="module")
def exported(model, transform_output, tmp_path_factory):
    from pipeline.export import language_model_export

    folder = tmp_path_factory.mktemp("models") / "tiny_lm"
    language_model_export.export_model(model, transform_output, recipe(), str(folder / "1"))
    drawn = recipe(temperature=1.0)
    language_model_export.export_model(
        model, transform_output, drawn, str(folder.parent / "drawn" / "1")
    )
    return folder


def oracle_weights(model):
    from tests.keras_models.models.test_language_model import oracle_weights

    return oracle_weights(model)


def ids_of(text):
    words = text.replace("\n", " [END] ").split()
    return [VOCABULARY.index(word if word in VOCABULARY else "<unk>") for word in words]


def test_scores_are_the_models(exported, model):
    from pipeline.export.served_language_model import ServedLanguageModel

    served = ServedLanguageModel(exported)
    # Three texts make two chunks of two; short and long ones share a bucket.
    scored = served.score([*TEXTS, "here"])
    for text, (words, log_probs) in zip([*TEXTS, "here"], scored):
        ids = ids_of(text)
        assert words == text.replace("\n", " [END] ").split()
        expected, _ = model(np.array([[3, *ids[:-1]]]), targets=np.array([ids]))
        np.testing.assert_allclose(log_probs, np.asarray(expected)[0], atol=1e-4)


def test_continuations_are_the_models(exported, model):
    from keras_models.decoding import continue_text
    from pipeline.export.served_language_model import ServedLanguageModel

    served = ServedLanguageModel(exported)
    together, plain = served.continue_text(TEXTS), served.continue_text(TEXTS, "continue_no_xla")
    for text, answer, other in zip(TEXTS, together, plain):
        [alone] = served.continue_text([text])
        for key in ("text", "tokens", "copied_from", "text_tokens"):
            assert answer[key] == alone[key] == other[key]
        ids = np.array([ids_of(text)])
        extended = ids.copy()
        if "Fernández" in text:
            extended[0, 1] = len(VOCABULARY) + 1
        special = np.arange(len(VOCABULARY)) < len(tokenization.SPECIAL_TOKENS) - 1
        special[3] = False
        found = continue_text(model, ids, extended, np.array([ids.shape[1]]), 5, forbidden=special)
        words = [
            VOCABULARY[i] if i < len(VOCABULARY) else "Fernández"
            for i in np.asarray(found["tokens"])[0]
        ]
        assert answer["tokens"] == words
        np.testing.assert_allclose(
            answer["log_probability"], np.asarray(found["log_probs"])[0], atol=1e-4
        )
        np.testing.assert_array_equal(answer["copied_from"], np.asarray(found["copied_from"])[0])
        assert len(answer["tokens"]) == 5
        # A copied word is the word at its position of text and continuation.
        everything = [*answer["text_tokens"], *answer["tokens"]]
        assert all(
            everything[at] == token
            for token, at in zip(answer["tokens"], answer["copied_from"])
            if at >= 0
        )


def test_drawing_is_repeatable(exported):
    from pipeline.export.served_language_model import ServedLanguageModel

    drawn = ServedLanguageModel(exported.parent / "drawn")
    assert drawn.continue_text(TEXTS) == drawn.continue_text(TEXTS)


def test_a_server_answers_over_grpc_with_warm_up(exported, capsys):
    from pipeline.commands import main
    from pipeline.export.served_language_model import ServedLanguageModel
    from serving.client import Client, RequestError
    from serving.server import ModelServer, ServerSettings

    served = ServedLanguageModel(exported)
    (version,) = exported.iterdir()
    assert warmup_signatures(version) == [*["continue"] * 4, "serving_default", "score"]
    with ModelServer(str(exported), ServerSettings(port=0)) as server:
        with Client(server.address, timeout=120) as client:
            assert set(client.metadata().signatures) >= {
                "serving_default",
                "continue",
                "continue_no_xla",
                "score",
            }
            [score] = client.score_text(TEXTS[0])
            assert score.tokens == ("mr.", "smith", "said", "[END]", "that")
            np.testing.assert_allclose(
                score.log_probabilities, served.score(TEXTS[:1])[0][1], atol=1e-5
            )
            answers = client.continue_text(TEXTS)
            assert [answer.text for answer in answers] == [
                answer["text"] for answer in served.continue_text(TEXTS)
            ]
            assert all(len(answer.tokens) == 5 for answer in answers)
            for token in (token for answer in answers for token in answer.tokens):
                assert token.copied_from is None or token.source_token == token.text
            with pytest.raises(
                RequestError, match="has 13 words, line ends included; this model takes at most 12"
            ):
                client.continue_text("here " * 13)
            with pytest.raises(
                RequestError, match=r"text\[1\] is empty; send a text that is not only white space"
            ):
                client.score_text(["here", " "])
        assert main.main(["request", "--continue", "--address", server.address, TEXTS[0]]) == 0
        assert answers[0].text.split("\n")[0] in capsys.readouterr().out


def test_a_stream_is_scored_as_the_oracle_scores_it(exported, model):
    """Float64 and plain loops, over unknown words that stand in the window, have left it, or never
    stood there.
    """
    from pipeline.export.served_language_model import ServedLanguageModel

    words = (
        "mr. Fernández said that Fernández is here \n Li is Li \n said that Li said <unk> Ruiz "
        "here that Ruiz is said Ruiz Li"
    ).split(" ")
    found = ServedLanguageModel(exported).score_stream(words)
    ids = ids_of(" ".join(words))
    names = dict.fromkeys(word for word in words if word not in VOCABULARY and word != "\n")
    numbers = {name: len(VOCABULARY) + number for number, name in enumerate(names)}
    extended = [numbers.get(word, number) for word, number in zip(words, ids)]
    window, size = 4, len(VOCABULARY) + len(names)
    for key, read in (("log_probability", ids), ("log_probability_with_copies", extended)):
        read = [3, *read[:-1]]
        p, _ = sentinel_oracle.language_model(
            [3, *ids[:-1]], read, oracle_weights(model), window, 0.025, 0.25, size
        )
        np.testing.assert_allclose(p.sum(axis=1), 1)
        expected, copied = [], []
        for t, (row, word, number) in enumerate(zip(p, words, ids)):
            credited = (
                key.endswith("copies")
                and word in numbers
                and numbers[word] in read[max(0, t - window + 1) : t + 1]
            )
            expected.append(row[numbers[word] if credited else number])
            copied.append(credited)
        np.testing.assert_allclose(found[key], np.log(expected), atol=1e-4)
    assert [word for word, one in zip(words, copied) if one] == [
        "Fernández",
        "Li",
        "Li",
        "Ruiz",
        "Ruiz",
    ]
    assert found["unknown"].tolist() == [word in numbers for word in words]


def test_a_stream_goes_on_where_it_ended(exported):
    """Texts of different lengths side by side, each with its own carry."""
    from pipeline.export.served_language_model import ServedLanguageModel

    served = ServedLanguageModel(exported)
    function = served._loaded.signatures["score_stream"]
    texts = ["mr. Li said that", "is here"], ["Li is", "mr. smith said\nmr. smith"]
    carry = {
        "context": np.array(["[END]"] * 2),
        "states": np.zeros([2, 2, 2, 6], "float32"),
        "window": np.zeros([2, 4, 6], "float32"),
    }
    parts = []
    for pair in texts:
        outputs = served._call(function, text=list(pair), **carry)
        carry = {name: outputs[name] for name in carry}
        parts.append(outputs)
    for row in range(2):
        whole = served.score_stream(
            " ".join(text[row] for text in texts).replace("\n", " \n ").split(" ")
        )
        for name in ("log_probability", "log_probability_with_copies"):
            together = np.concatenate(
                [part[name][row, : part["token_count"][row]] for part in parts]
            )
            np.testing.assert_allclose(together, whole[name], atol=1e-5)
    from pipeline.export.served_model import ModelError

    with pytest.raises(ModelError, match="The text to score is empty"):
        served.score_stream([])


def test_facts_and_evaluation_of_a_text_file(exported, model, tmp_path, capsys):
    from pipeline.commands import main

    facts = json.loads(
        (exported / "1" / "assets.extra" / "verbatim.json").read_text(encoding="utf-8")
    )
    assert (facts["task"], facts["head"], facts["compilations"]) == (
        "language_model",
        "pointer_sentinel",
        4,
    )
    assert recipe_from_dict(facts["recipe"]) == recipe()
    text = tmp_path / "text.txt"
    text.write_text(
        "mr. smith said that\nmr. smith is here\n\nthat is <unk>\nhere is mr. smith\n",
        encoding="utf-8",
    )
    written = tmp_path / "facts.json"
    arguments = ["evaluate", "--model", str(exported), "--data", str(text), "--json", str(written)]
    assert main.main(arguments) == 0
    measured = json.loads(written.read_text(encoding="utf-8"))
    assert (
        measured["words"] == 20
        and measured["unknown_words"] == 0
        and "20 words" in capsys.readouterr().out
    )
    # In chunks of 12 words, which no figure depends on: the stream from its beginning, states and
    # window carried.
    weights = [oracle_weights(model), 4, 0.025, 0.25]
    expected = sentinel_oracle.perplexity(ids_of(text.read_text(encoding="utf-8")), 3, *weights)
    for name in ("perplexity", "word_perplexity", "perplexity_with_copies"):
        assert measured["metrics"][name]["value"] == pytest.approx(expected, rel=1e-4), name
    capsys.readouterr()
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    for data, sentence in ((tmp_path / "empty.txt", "is empty"), (tmp_path, "is not a file")):
        assert main.main(["evaluate", "--model", str(exported), "--data", str(data)]) == 1
        assert sentence in capsys.readouterr().err
    assert main.main([*arguments, "--metrics", "bleu"]) == 1
    assert "only be measured by 'perplexity'" in capsys.readouterr().err


def test_a_recipe_is_kept_whole():
    assert dataclasses.asdict(recipe(temperature=0.5))["language_model"]["temperature"] == 0.5
