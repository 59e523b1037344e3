"""What the segmenting encoder needs of a pipeline:
characters without spaces, runs of one script, phases, scores, rules.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

tf = pytest.importorskip("tensorflow")

from keras_models.layers.segmentation_policy import WORD_ENDS
from pipeline.features import feature_names, lookup_tables
from pipeline.features.pair_preprocessor import PairPreprocessor
from pipeline.metrics import segmentation_scores
from pipeline.recipes import sections, views
from pipeline.recipes.fields import RecipeError
from pipeline.recipes.recipe import recipe_from_dict
from pipeline.text import multigrams, scripts
from pipeline.text.tokenization import Tokenizer
from pipeline.training import segmentation_phases

RECIPE = {
    "name": "x",
    "data": {"source_tokenization": "characters", "tokenization": "whitespace"},
    "model": {"head": "softmax", "encoder": "segmenting"},
}


def recipe(**sections):
    return recipe_from_dict(
        {**RECIPE, **{name: {**RECIPE.get(name, {}), **keys} for name, keys in sections.items()}}
    )


def cut(texts, **options):
    tokens = Tokenizer("characters", **options).tokenize(tf.constant(texts))
    return [[token.decode() for token in row] for row in tokens.to_list()]


def test_characters_are_those_of_readers_and_spaces_are_forgotten():
    assert cut(["これは ペン  です 。", "e\u0301a %(name)s <b>か\u3099", " \u3000", ""]) == [
        list("これはペンです。"),
        ["e\u0301", "a", "%(name)s", "<b>", "か\u3099"],
        [],
        [],
    ]
    assert cut(["AB c"], lowercase=True) == [["a", "b", "c"]]


@settings(max_examples=60)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12))
def test_python_and_graph_agree(text):
    tokenizer = Tokenizer("characters")
    assert tokenizer.tokens(text) == cut([text])[0]
    assert tokenizer.count(text) == len(tokenizer.tokens(text)) == len(tokenizer.words(text))
    joined = tokenizer.detokenize(tokenizer.tokenize(tf.constant([text])))[0].numpy().decode()
    assert "".join(joined.split()) == "".join("".join(tokenizer.tokens(text)).split())


def words_of(characters, ends):
    words, word = [], ""
    for character, end in zip(characters, ends):
        word += character.decode()
        if end:
            words.append(word)
            word = ""
    return words


def test_runs_of_one_script():
    characters = Tokenizer("characters").tokenize(
        tf.constant(["1994年にABカタカナーを。、見ました", "", "々人か\u3099"])
    )
    ends = scripts.script_ends(characters).to_list()
    words = words_of(characters.to_list()[0], ends[0])
    assert words == ["1994", "年", "に", "AB", "カタカナー", "を", "。", "、", "見", "ました"]
    assert ends[1:] == [[], [0, 1, 1]]
    ends = scripts.script_ends(characters, kana_alone=True).to_list()
    assert words_of(characters.to_list()[0], ends[0]) == [*words[:-1], "ま", "し", "た"]
    assert ends[1:] == [[], [0, 1, 1]]


def test_the_graph_makes_what_the_heuristic_needs():
    ours = recipe(segmentation={"warm_up": "script"})
    assert feature_names.encoder_features(ours) == (WORD_ENDS,)
    assert feature_names.encoder_features(recipe()) == ()
    settings = views.transform_settings(ours)
    assert settings["word_ends"] and settings["source_tokenizer"] == {
        "kind": "characters",
        "lowercase": False,
    }
    table = lambda words: tf.lookup.StaticHashTable(  # noqa: E731
        tf.lookup.KeyValueTensorInitializer(words, tf.range(9, 9 + len(words), dtype=tf.int64)), -1
    )
    preprocessor = PairPreprocessor(
        table(["見", "た"]),
        table(["saw", "it"]),
        tokenizer=Tokenizer("characters"),
        target_tokenizer=Tokenizer("whitespace"),
        settings=settings,
    )
    made = preprocessor.features(tf.constant(["見 た"]), tf.constant(["saw it"]))
    assert made["source_ids"].to_list() == [[9, 10]] and made[WORD_ENDS].to_list() == [[1, 1]]
    assert made["target_extended_ids"].to_list() == [[9, 10, 3]]


def test_the_graph_finds_the_words_of_a_multigram_model(tmp_path):
    ours = recipe(segmentation={"warm_up": "multigrams"})
    assert feature_names.encoder_features(ours) == (WORD_ENDS,)
    assert views.vocabulary_settings(ours)["multigrams"]
    assert "multigrams" not in views.vocabulary_settings(recipe())
    lines = multigrams.lines({"山": -2.0, "川": -2.0, "山 川": -3.0})
    (tmp_path / multigrams.FILE).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    settings = views.transform_settings(ours)
    tables = lookup_tables.load_tables(str(tmp_path), settings, lambda path, make: make(path))
    table = tables.multigrams
    preprocessor = PairPreprocessor(
        table, table, tokenizer=Tokenizer("characters"), settings=settings, tables=tables
    )
    ends = preprocessor._word_ends(
        preprocessor.tokenizer.tokenize(tf.constant(["川 山川", "山 %s 川"])), "multigrams"
    )
    assert ends.to_list() == [[1, 0, 1], [1, 1, 1]]


def test_phases_begin_with_imitation_and_take_turns():
    config = sections.SegmentationConfig(warm_up="prior", warm_up_updates=2, alternate_updates=3)
    phases = segmentation_phases.SegmentationPhases(config)
    shares = [phases.shares(step) for step in range(10)]
    together, translation, policy = (1.0, 1.0, 1.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    assert shares == [together] * 2 + [translation] * 3 + [policy] * 3 + [translation] * 2
    plain = segmentation_phases.SegmentationPhases(sections.SegmentationConfig(warm_up_updates=2))
    assert {plain.shares(step) for step in range(5)} == {(0.0, 1.0, 1.0)}


def test_scores_count_whole_words_and_boundaries():
    found = [["ab", "c", "de"], ["xyz"]]
    expected = [["ab", "cde"], ["x", "yz"]]
    got = segmentation_scores.score(found, expected)
    # ab alone is found whole; the boundary behind ab is found, that behind c is too much, that
    # behind x is missed.
    assert (
        got["word_precision"] == 1 / 4 and got["word_recall"] == 1 / 4 and got["word_f1"] == 1 / 4
    )
    assert got["boundary_f1"] == 2 * 1 / (2 + 2)
    assert (got["mean_length"], got["expected_mean_length"]) == (8 / 4, 8 / 4)
    perfect = segmentation_scores.score(expected, expected)
    assert perfect["word_f1"] == perfect["boundary_f1"] == 1
    with pytest.raises(ValueError, match="are not of the same text"):
        segmentation_scores.score([["a"]], [["b"]])


def test_answers_are_compared_where_the_sources_have_spaces():
    answers = [{"source_tokens": ["ab", "c"]}, {"source_tokens": ["d"]}]
    facts = segmentation_scores.of_answers(["a bc", "d"], answers)
    assert facts["examples"] == [
        {"found": ["ab", "c"], "expected": ["a", "bc"]},
        {"found": ["d"], "expected": ["d"]},
    ]
    assert facts["word_f1"] == 2 * 1 / 6
    assert "left out" not in segmentation_scores.describe(facts)
    assert segmentation_scores.of_answers(["abc", "d"], answers) == {
        "left_out": 0,
        "examples": [{"found": ["ab", "c"], "expected": None}, {"found": ["d"], "expected": None}],
    }


def test_texts_that_normalization_changed_are_left_out_and_counted():
    answers = [{"source_tokens": ["ab", "c"]}, {"source_tokens": ["1", "2"]}]
    facts = segmentation_scores.of_answers(["a bc", "\N{FULLWIDTH DIGIT ONE} 2"], answers)
    assert facts["left_out"] == 1 and len(facts["examples"]) == 1
    assert segmentation_scores.describe(facts).endswith(
        "; 1 texts left out, whose characters normalization or limits changed"
    )


@pytest.mark.parametrize(
    "sections, words",
    [
        (
            {"data": {"source_tokenization": ""}},
            "'model.encoder' = \"segmenting\" needs 'data.source_tokenization'",
        ),
        ({"model": {"head": "joint_copy"}}, "'model.head' must be \"softmax\""),
        ({"baseline": {"head": "joint_copy"}}, "'baseline.head' must be \"softmax\""),
        ({"model": {"attention": "none"}}, "needs a 'model.attention'"),
        ({"model": {"hidden_size": 25}}, "'model.hidden_size' must be even"),
        ({"model": {"body": "transformer"}}, "'model.encoder' .segmenting. needs 'model.body'"),
        ({"decoding": {"replace_unknown": "copy"}}, "'decoding.replace_unknown' must be \"none\""),
        (
            {"decoding": {"temperature": 1.0}, "segmentation": {"decoding_samples": 2}},
            "'segmentation.decoding_samples'",
        ),
        ({"segmentation": {"baseline": "samples"}}, "'segmentation.samples' must be at least 2"),
        ({"segmentation": {"warm_up": "words"}}, "'segmentation.warm_up'"),
        ({"data": {"units": "characters"}}, "'data.source_tokenization' needs 'data.units'"),
        ({"vocabulary": {"joint": True}}, "'vocabulary.joint' must be false"),
        (
            {"lexicon": {"kind": "learned"}},
            "'lexicon.kind' works on words: it needs 'data.source_tokenization' = \"\"",
        ),
    ],
)
def test_recipes_that_make_no_sense_are_refused(sections, words):
    with pytest.raises(RecipeError, match=words):
        recipe(**sections)
