"""Plain text as a stream of words: what is read, how it is cut, and what is refused."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.readers import DataError, text_streams
from pipeline.recipes import loading, sections
from pipeline.recipes.fields import RecipeError
from pipeline.recipes.recipe import Recipe


def recipe(window=3, rows=2, longest=8, **data):
    data = {
        "train_files": ("*train*",),
        "eval_files": ("valid.txt",),
        "tokenization": "whitespace",
        **data,
    }
    return Recipe(
        name="x",
        task="language_model",
        data=sections.DataConfig(**data),
        model=sections.ModelConfig(head="softmax"),
        decoding=sections.DecodingConfig(length_buckets=(longest,)),
        language_model=sections.LanguageModelConfig(window=window, batch_size=rows, stride=3),
    )


def folder(tmp_path, **texts):
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    return tmp_path


def words(count):
    return " ".join(f"w{number}" for number in range(count)) + "\n"


def test_lines_end_with_a_word_of_their_own(tmp_path):
    text = b"\xef\xbb\xbf a  b \r\n\n <unk>\xc2\xa0N"
    path = folder(tmp_path, valid=text) / "valid.txt"
    read = list(text_streams.read_words("valid.txt", str(path), recipe().data))
    assert read == [("a", 1), ("b", 1), ("\n", 1), ("\n", 2), ("<unk>", 3), ("N", 3), ("\n", 3)]
    lower = dataclasses.replace(recipe().data, lowercase=True)
    assert list(text_streams.read_words("valid.txt", str(path), lower))[-2] == ("n", 3)


@given(
    st.lists(st.sampled_from(["a", "b", "\n"]), max_size=30),
    st.integers(min_value=0, max_value=4),
    st.integers(1, 5),
)
def test_passages_are_the_stream_and_repeat_their_context(stream, context, new):
    passages = list(text_streams.passages_of([(word, 1) for word in stream], context, new, first=7))
    assert [passage.order for passage in passages] == list(range(7, 7 + len(passages)))
    rebuilt = []
    for passage in passages:
        parts = text_streams.words_of(passage.text)
        assert parts[: passage.context] == (rebuilt[-passage.context :] if passage.context else [])
        assert (
            passage.context == min(context, len(rebuilt))
            and 0 < len(parts) - passage.context <= new
        )
        rebuilt += parts[passage.context :]
    assert rebuilt == stream


def test_training_passages_repeat_nothing(tmp_path):
    folder(tmp_path, train=words(20), more_train=words(9), valid=words(20))
    plan = text_streams.plan_streams(str(tmp_path), recipe())
    assert [name for name, _ in plan.files["train"]] == [
        "more_train.txt",
        "train.txt",
    ] and "test" not in plan.files
    train = list(text_streams.read_passages(plan, "train", recipe()))
    assert all(passage.context == 0 for passage in train) and {
        passage.file for passage in train
    } == {
        "more_train.txt",
        "train.txt",
    }
    assert [passage.order for passage in train] == sorted(passage.order for passage in train)
    held = list(text_streams.read_passages(plan, "eval", recipe()))
    assert [passage.context for passage in held] == [0, 3, 3, 3, 3]
    assert all(len(text_streams.words_of(passage.text)) <= 8 for passage in held)


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ({"train": words(20), "valid": ""}, r"valid.txt is empty: fill it or remove it\."),
        (
            {"train": words(20)},
            "The recipe names valid.txt in data.eval_files, but .* contains no such file",
        ),
        (
            {"train": words(20), "valid": "a b\n"},
            r"valid.txt has 3 words, line ends included, and the window is 3: give more text, or "
            r"lower language_model.window\.",
        ),
        ({"train": b"ok\n\xff\xfe" * 9, "valid": words(20)}, "Line 2 of .*train.txt is not UTF-8"),
    ],
)
def test_text_that_cannot_be_used_is_refused_in_one_sentence(tmp_path, texts, sentence):
    folder(tmp_path, **texts)
    with pytest.raises(DataError, match=sentence):
        text_streams.plan_streams(str(tmp_path), recipe())


def test_too_little_for_the_rows_a_file_twice_and_no_folder(tmp_path):
    folder(tmp_path, train=words(20), valid=words(20))
    with pytest.raises(
        DataError,
        match="they are read in 30 rows: give more text, or lower language_model.batch_size",
    ):
        text_streams.plan_streams(str(tmp_path), recipe(rows=30))
    with pytest.raises(
        DataError, match="valid.txt is named in data.train_files and in data.eval_files"
    ):
        text_streams.plan_streams(str(tmp_path), recipe(train_files=("*.txt",)))
    with pytest.raises(DataError, match="valid.txt is not a folder"):
        text_streams.plan_streams(str(tmp_path / "valid.txt"), recipe())


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["data.format=tsv"], "'data.format' must be \"text\""),
        (["data.tokenization=text"], "'data.tokenization' must be \"whitespace\""),
        (["data.eval_files=[]"], "'data.eval_files' must name"),
        (
            ["model.head=pointer_generator"],
            "'model.head' must be one of 'softmax', 'pointer_sentinel'",
        ),
        (
            ["language_model.stride=101"],
            r"stride' \(101\) cannot exceed 'language_model.window' \(100\)",
        ),
        (["decoding.length_buckets=[64, 100]"], r"'decoding.length_buckets' \(100\) must exceed"),
        (
            ["language_model.tie_weights=true", "model.hidden_size=10"],
            "'model.hidden_size' to be equal",
        ),
        (
            ["model.tie_embeddings=target", "model.hidden_size=10"],
            "'model.tie_embeddings' needs 'model.embedding_size' and 'model.hidden_size'",
        ),
        (["model.tie_embeddings=all"], "a language model: it has no source"),
        (["training.learning_rate=0"], "'training.learning_rate' must be above 0"),
        (["task=translation"], "'task' must be one of 'seq2seq', 'language_model'"),
        (["task=seq2seq"], "needs 'task' = \"language_model\""),
    ],
)
def test_recipes_that_cannot_be_are_refused(overrides, sentence):
    with pytest.raises(RecipeError, match=sentence):
        loading.load_recipe("penn_treebank", overrides)


@pytest.mark.parametrize("name", ["penn_treebank", "penn_treebank_small", "wikitext2"])
def test_recipes_of_language_models(name):
    loaded = loading.load_recipe(name)
    assert loaded.task == "language_model" and text_streams.evaluated_split(loaded.data) == "eval"
    assert Recipe.from_json(loaded.to_json()) == loaded
    context, new = text_streams.passage_sizes(loaded)
    assert (
        context == loaded.language_model.window
        and context + new == loaded.decoding.length_buckets[-1]
    )
