"""The vocabulary component: what is cut, what is written, and what is read back."""

import json

import pytest

from pipeline.text import tokenization

SPECIAL = list(tokenization.SPECIAL_TOKENS)


def choose(counts, size=100, min_count=1, protected_min_count=1):
    from pipeline.features.vocabulary_choice import choose_tokens

    return choose_tokens(counts, size, min_count, protected_min_count)


def write_examples(folder, pairs):
    """Writes the split `train` as the example gen does."""
    import tensorflow as tf

    (folder / "Split-train").mkdir(parents=True)
    with tf.io.TFRecordWriter(str(folder / "Split-train" / "data.gz"), options="GZIP") as writer:
        for pair in pairs:
            features = {
                side: tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()]))
                for side, text in zip(("source", "target", "pos"), pair)
            }
            writer.write(
                tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
            )


def run(tmp_path, pairs, tokenizer=None, settings=None, **config):
    """Runs the executor; returns the folder that it wrote."""
    from tfx.types import standard_artifacts
    from tfx.types.experimental import simple_artifacts

    from components.vocabulary import executor

    examples, vocabulary = standard_artifacts.Examples(), simple_artifacts.File()
    examples.uri, vocabulary.uri = str(tmp_path / "examples"), str(tmp_path / "vocabulary")
    examples.split_names = '["train", "eval", "test"]'
    write_examples(tmp_path / "examples", pairs)
    context = executor.Executor.Context(beam_pipeline_args=[], tmp_dir=str(tmp_path), unique_id="1")
    config = {
        "source_size": 100,
        "target_size": 100,
        "min_count": 1,
        "protected_min_count": 1,
        **config,
    }
    settings = {"tokenizer": tokenizer or {}, **(settings or {})}
    executor.Executor(context).Do(
        {"examples": [examples]},
        {"vocabulary": [vocabulary]},
        {"vocabulary_config": json.dumps(config), "text_settings": json.dumps(settings)},
    )
    return tmp_path / "vocabulary"


def test_special_tokens_come_first_then_the_frequent():
    assert choose({"b": 2, "c": 5, "a": 2, "￭,": 3}) == [*SPECIAL, "c", "￭,", "a", "b"]
    assert choose({}) == SPECIAL


def test_the_size_counts_special_tokens():
    assert choose({"a": 3, "b": 2, "c": 1}, size=len(SPECIAL) + 2) == [*SPECIAL, "a", "b"]


def test_rare_words_and_rarer_protected_tokens_are_left_out():
    rare = dict.fromkeys(["%(name)s", "</i>", "https://x.org", "--all"], 4)
    counts = {"word": 2, "rare": 1, "%s": 5, "<b>": 5, "￭.": 2, **rare}
    assert choose(counts, min_count=2, protected_min_count=5)[len(SPECIAL) :] == [
        "%s",
        "<b>",
        "word",
        "￭.",
    ]


def test_a_special_token_is_never_there_twice():
    assert choose({"￭": 9, "[PAD]": 9, "[UNK]": 9, "a": 1}) == [*SPECIAL, "a"]


@pytest.mark.parametrize(
    "end", ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"]
)
def test_a_token_that_spans_lines_is_left_out(end):
    assert choose({f"<a{end}b>": 9, "<a b>": 9}) == [*SPECIAL, "<a b>"]


@pytest.mark.slow
def test_the_executor_counts_the_train_split_alone(tmp_path):
    from pipeline.features.vocabulary_files import read_training_counts

    pairs = [
        ("Open %s, now", "Ouvrez %s maintenant"),
        ("Open <a\u2028b=1> Zanzibar", "Ouvrez <a\u2028b=1> l'été"),
        ("Open <c\nd=1>", "Ouvrez {0}{0}"),
    ]
    folder = run(tmp_path, pairs, min_count=1, protected_min_count=2, target_size=len(SPECIAL) + 3)
    assert sorted(path.name for path in folder.iterdir()) == [
        "source_counts.tsv",
        "source_vocabulary.txt",
        "target_counts.tsv",
        "target_vocabulary.txt",
    ]
    source = (folder / "source_vocabulary.txt").read_bytes().decode().split("\n")
    assert source == [*SPECIAL, "Open", "Zanzibar", "now", "￭,", ""]
    target = (folder / "target_vocabulary.txt").read_bytes().decode().split("\n")
    assert target == [*SPECIAL, "Ouvrez", "{0}", "l'￭", ""]
    rows = (folder / "target_counts.tsv").read_bytes().decode().removesuffix("\n").split("\n")
    counts = {
        json.loads(token): int(count) for token, count in (row.rsplit("\t", 1) for row in rows)
    }
    assert counts == {
        **{
            "Ouvrez": 3,
            "%s": 1,
            "maintenant": 1,
            "<a\u2028b=1>": 1,
            "l'￭": 1,
            "été": 1,
            "{0}": 2,
            "￭": 1,
        },
    }
    # The words of both sides, bare, with the target side's counts.
    assert read_training_counts(str(folder)) == {
        **dict.fromkeys((",", "Open", "now", "Zanzibar", "<c\nd=1>"), 0),
        **{"Ouvrez": 3, "%s": 1, "maintenant": 1, "<a\u2028b=1>": 1, "l'": 1, "été": 1, "{0}": 2},
    }
    assert "Open" in read_training_counts(str(folder))


@pytest.mark.slow
def test_the_executor_counts_the_recipes_tokens(tmp_path):
    pairs = [("What IS it ?", "(Open ( It"), ("what is", "open It")]
    folder = run(tmp_path, pairs, tokenizer={"kind": "whitespace", "lowercase": True})
    assert (folder / "source_vocabulary.txt").read_text().split() == [
        *SPECIAL,
        "is",
        "what",
        "?",
        "it",
    ]
    assert (folder / "target_vocabulary.txt").read_text().split() == [
        *SPECIAL,
        "it",
        "(",
        "(open",
        "open",
    ]


def test_the_component_depends_on_what_decides_the_words_alone():
    from tfx import types
    from tfx.types import standard_artifacts

    from components.vocabulary.component import Vocabulary
    from pipeline.recipes import views
    from pipeline.recipes.recipe import Recipe
    from pipeline.recipes.sections import DataConfig, TrainingConfig, VocabularyConfig

    def properties(**sections):
        recipe = Recipe(name="x", **sections)
        return Vocabulary(
            examples=types.Channel(type=standard_artifacts.Examples),
            config=recipe.vocabulary,
            settings=views.vocabulary_settings(recipe),
        ).exec_properties

    assert properties() == properties(
        training=TrainingConfig(epochs=3), data=DataConfig(max_characters=9)
    )
    assert properties() != properties(data=DataConfig(tokenization="whitespace"))
    assert properties() != properties(data=DataConfig(lowercase=True))
    assert properties() != properties(vocabulary=VocabularyConfig(min_count=3))
    assert set(json.loads(properties()["vocabulary_config"])) == {
        *("source_size", "target_size", "min_count", "protected_min_count", "joint"),
    }


def test_tags_lexicons_and_entities_are_part_of_the_artifact(tmp_path, caplog):
    (tmp_path / "d.tsv").write_text("house\tmaison\nice cream\tglace\nhome\tmaison\n", "utf-8")
    (tmp_path / "l.txt").write_text(
        "new york, ny :- NP : nyc:ci\nnew york\tother\nnew york\tthird\n", "utf-8"
    )
    pairs = [("a [ENTITY_1]", "x", "NN [PAD]"), ("b b", "y", "DT NN")]
    settings = {
        "source_features": ["pos"],
        "entities": 2,
        "dictionary": str(tmp_path / "d.tsv"),
        "copy_lexicon": str(tmp_path / "l.txt"),
    }
    with caplog.at_level("INFO", logger="verbatim.progress"):
        folder = run(tmp_path, pairs, settings=settings)

    def lines(name):
        return (folder / name).read_text("utf-8").splitlines()

    assert lines("tags_pos.txt") == ["[PAD]", "[UNK]", "NN", "DT"]
    assert lines("source_vocabulary.txt")[-2:] == ["[ENTITY_1]", "[ENTITY_2]"]
    assert lines("source_vocabulary.txt").count("[ENTITY_1]") == 1
    assert "[ENTITY_2]" not in lines("target_vocabulary.txt")
    assert lines("dictionary_sources.tsv") == ["maison\thouse home"]
    assert lines("dictionary_targets.tsv") == ["house\tmaison", "home\tmaison"]
    # A phrase stands there as the tokens that a text has.
    assert lines("copy_lexicon.tsv") == ["new york ￭, ny\tnyc:_ci", "new york\tother"]
    said = caplog.text
    assert "1 of 3 entries of" in said and "1 entries of" in said


@pytest.mark.slow
def test_the_characters_of_the_source_are_part_of_the_artifact(tmp_path):
    settings = {"tokenizer": {"kind": "whitespace"}, "characters": True}
    folder = run(
        tmp_path, [("banana %s é", "x")], settings=settings, characters=9, character_min_count=1
    )
    lines = (folder / "source_characters.txt").read_text("utf-8").split("\n")
    assert lines == [
        "[PAD]",
        "[UNK]",
        "[PLACEHOLDER]",
        "[TAG]",
        "[URL]",
        "[OPTION]",
        "a",
        "n",
        "b",
        "",
    ]


def test_a_changed_lexicon_is_read_again(tmp_path):
    from tfx import types
    from tfx.types import standard_artifacts

    from components.vocabulary.component import Vocabulary
    from pipeline.recipes import views
    from pipeline.recipes.recipe import Recipe
    from pipeline.recipes.sections import DataConfig

    def properties(path):
        recipe = Recipe(name="x", data=DataConfig(dictionary=str(path)))
        return Vocabulary(
            examples=types.Channel(type=standard_artifacts.Examples),
            config=recipe.vocabulary,
            settings=views.vocabulary_settings(recipe),
        ).exec_properties

    (tmp_path / "d.tsv").write_text("a\tb\n")
    before = properties(tmp_path / "d.tsv")
    assert properties(tmp_path / "d.tsv") == before
    (tmp_path / "d.tsv").write_text("a\tc\n")
    assert properties(tmp_path / "d.tsv") != before
    assert "dictionary_digest" not in json.loads(properties(tmp_path / "none")["text_settings"])


@pytest.mark.slow
def test_multigrams_are_learned_from_the_sources_characters(tmp_path):
    from pipeline.text import multigrams

    texts = ["山 川 %s", "", "山川", *(f"{chr(0x4E00 + n)}水" for n in range(300))]
    settings = {"source_tokenizer": {"kind": "characters"}, "multigrams": True}
    folder = run(tmp_path, [(text, "x") for text in texts], settings=settings)
    characters = [[*"山川", "%s"], [], list("山川"), *([text[0], "水"] for text in texts[3:])]
    expected = multigrams.lines(multigrams.learn(characters, lambda token: token == "%s"))
    lines = (folder / multigrams.FILE).read_text("utf-8").splitlines()
    assert lines == list(expected) and len(lines) == 304 and lines[0].startswith("一\t")


@pytest.mark.slow
def test_sources_without_characters_have_no_multigrams(tmp_path):
    settings = {"source_tokenizer": {"kind": "characters"}, "multigrams": True}
    with pytest.raises(Exception, match="no character to learn words of: check the data"):
        run(tmp_path, [("%s", "x"), ("", "x")], settings=settings)
