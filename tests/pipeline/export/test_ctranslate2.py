"""Exported Transformers as models of CTranslate2: the same numbers, answers and refusals."""

import json
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip(
    "ctranslate2", reason="ctranslate2, which writes and runs the models, is not installed"
)

from pipeline.export import ctranslate2_export, ctranslate2_facts
from pipeline.export.ctranslate2_facts import ConvertedModelError
from pipeline.export.ctranslate2_model import CTranslate2Model
from pipeline.export.ctranslate2_rules import ConversionError
from pipeline.export.served_model import ServedModel
from tests.pipeline.export import tiny_models
from tests.pipeline.export.tiny_models import export_tiny, make_recipe
from tests.test_installation import BLOCK_OTHERS, OURS, packages_of
from tests.test_readme import DOCS, code_blocks

pytestmark = pytest.mark.slow

WORDS = [f"w{number}" for number in range(12)]
TRANSLATIONS = [f"v{number}" for number in range(12)]
NETWORK = {
    "body": "transformer",
    "head": "softmax",
    "hidden_size": 24,
    "embedding_size": 16,
    "attention_heads": 2,
    "feed_forward_size": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
}
# XLA would compile each search; the tests of exports have it.
SIGNATURES = ("serving_default", "serving_default_no_xla", "n_best_no_xla", "explain", "score")


def translation(draw, word):
    """Words of some kinds have two translations, or one of two, or none."""
    number = int(word[1:])
    if number % 4 == 0:
        return [f"v{number}", draw.choice(["v1", "v2"])]
    return [] if number % 5 == 0 else [f"v{number}"]


def pairs(number):
    draw = random.Random(1)
    for _ in range(number):
        source = draw.choices(WORDS, k=draw.randint(1, 7))
        target = [made for word in source for made in translation(draw, word)] or ["v0"]
        yield " ".join(source), " ".join(target)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model whose outputs end at different lengths, and whose vocabulary lacks words."""
    recipe = make_recipe(
        model=NETWORK,
        data={"max_tokens": 15},
        training={"epochs": 25, "learning_rate": 0.01},
        decoding={"beam_size": 3, "n_best": 3, "length_penalty": 0.7, "replace_unknown": "copy"},
    )
    rows = list(pairs(400))
    folder = tmp_path_factory.mktemp("trained")
    return export_tiny(folder, recipe, rows, WORDS, TRANSLATIONS[:10], SIGNATURES)


@pytest.fixture(scope="module")
def converted(trained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("converted") / "model"
    ctranslate2_export.convert(str(trained), str(folder))
    return folder


@pytest.fixture(scope="module")
def sources():
    draw = random.Random(4)
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(1, 7))) for _ in range(40)]
    # Words that nothing knows, texts that pass through, white space around.
    return [*texts, "w1 unseen w11 w3", "%s 12", "unseen", " w1 [PAD] w2\n", "w3 %(name)s w10"]


def n_best(served, texts):
    """Text and score of the best answers, as the served model finds them."""
    import tensorflow as tf

    function = served._loaded.signatures["n_best_no_xla"]
    outputs = function(source=tf.constant(texts))
    return [
        [(text.decode(), score) for text, score in zip(*row)]
        for row in zip(outputs["text"].numpy(), outputs["score"].numpy())
    ]


def test_answers_are_those_of_the_served_model(trained, converted, sources):
    ours = ServedModel(trained).predict(sources, "explain")
    theirs = CTranslate2Model(converted, exact_scores=True).predict(sources, attention=True)
    assert any(place >= 0 for answer in ours[:-5] for place in answer["copied_from"])
    for expected, answer in zip(ours, theirs):
        assert answer.keys() == expected.keys()
        for key in ("text", "tokens", "copied_from", "source_tokens", "unknown_not_copied"):
            assert answer[key] == expected[key], (key, expected["source_tokens"])
        for key in ("score", "copy_probability", "attention"):
            np.testing.assert_allclose(answer[key], expected[key], atol=1e-3, err_msg=key)


def test_n_best_have_the_same_scores(trained, converted, sources):
    """Searches differ where hypotheses end at different lengths, scores never."""
    ours = n_best(ServedModel(trained), sources)
    theirs = CTranslate2Model(converted, exact_scores=True).n_best(sources)
    common = 0
    for expected, answers in zip(ours, theirs):
        assert len(answers) == 3
        scores = [answer["score"] for answer in answers]
        assert scores == sorted(scores, reverse=True)
        known = dict(expected)
        for answer in answers:
            if answer["text"] in known:
                common += 1
                assert answer["score"] == pytest.approx(known[answer["text"]], abs=1e-3)
    assert common > 0.9 * 3 * len(sources)


def test_improbable_hypotheses_that_end_early_do_not_end_a_search(trained, converted):
    """With CTranslate2's default patience 9 of 600 outputs were worse than ours."""
    draw = random.Random(9)
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(1, 7))) for _ in range(600)]
    ours = [answer["score"] for answer in ServedModel(trained).predict(texts)]
    answers = CTranslate2Model(converted, exact_scores=True).predict(texts)
    worse = [answer["score"] < score - 1e-3 for answer, score in zip(answers, ours)]
    assert sum(worse) <= 1


def test_outputs_have_the_log_probability_that_the_served_model_gives(trained, converted, sources):
    texts = sources[:40]
    answers = CTranslate2Model(converted, exact_scores=True).predict(texts)
    plain = [
        " ".join(token if token in TRANSLATIONS else "zzz" for token in answer["tokens"])
        for answer in answers
    ]
    log_probs, counts = ServedModel(trained).score(texts, plain)
    expected = log_probs / ((5.0 + counts) / 6.0) ** 0.7
    np.testing.assert_allclose([answer["score"] for answer in answers], expected, atol=1e-3)


def test_a_text_has_the_same_answer_whatever_is_beside_it(converted, sources):
    model = CTranslate2Model(converted)
    together = model.predict(sources, attention=True)
    for number in (0, 7, 40, 44):
        (alone,) = model.predict([sources[number]], attention=True)
        assert alone["text"] == together[number]["text"]
        np.testing.assert_allclose(alone["attention"], together[number]["attention"], atol=2e-4)


def test_the_facts_hold_what_ctranslate2_alone_needs(converted, sources):
    """Texts of words between blanks, with no package of ours."""
    import ctranslate2

    facts = json.loads((converted / "verbatim.json").read_text())
    translator = ctranslate2.Translator(str(converted))
    texts = sources[:40]
    results = translator.translate_batch(
        [text.split() for text in texts], max_batch_size=1, **facts["translate_batch"]
    )
    made = [" ".join(result.hypotheses[0]) for result in results]
    expected = [answer["text"] for answer in CTranslate2Model(converted).predict(texts)]
    assert sum(map(str.__eq__, made, expected)) > 0.9 * len(texts)


def test_the_extra_is_all_that_answers_need(converted):
    allowed = sorted({*packages_of("ctranslate2"), "yaml", *OURS})
    code = f"""ALLOWED = {allowed!r}
{BLOCK_OTHERS}
from pipeline.export.ctranslate2_model import CTranslate2Model
print(CTranslate2Model({str(converted)!r}).predict(["w1 w2"])[0]["text"])
"""
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stderr
    assert made.stdout.strip() == CTranslate2Model(converted).predict(["w1 w2"])[0]["text"]


def test_the_guide_works(converted, tmp_path, monkeypatch, capsys):
    (tmp_path / "converted").symlink_to(converted)
    monkeypatch.chdir(tmp_path)
    blocks = code_blocks("python", DOCS / "guides" / "ctranslate2.md")
    for block in blocks:
        exec(compile(block, "ctranslate2.md", "exec"), {})
    assert len(blocks) == 2 and "v1" in capsys.readouterr().out


def test_texts_that_the_model_does_not_take(converted):
    model = CTranslate2Model(converted)
    with pytest.raises(ConvertedModelError, match="source text 1 is empty"):
        model.predict(["w1", " \n"])
    with pytest.raises(ConvertedModelError, match="source text 0 has 17 tokens; .* at most 16"):
        model.predict(["w1 " * 17])
    with pytest.raises(ConvertedModelError, match="takes no glossary"):
        model.predict(["w1 \ufff9w2\ufffav2\ufffb"])


def test_folders_that_hold_no_converted_model(trained, converted, tmp_path):
    with pytest.raises(ConvertedModelError, match="no facts of a converted model"):
        CTranslate2Model(trained)
    shutil.copytree(converted, tmp_path / "copy")
    (tmp_path / "copy" / "model.bin").write_bytes(b"x")
    with pytest.raises(ConvertedModelError, match="cannot be loaded .*convert it again"):
        CTranslate2Model(tmp_path / "copy")


def edited(trained, folder, **sections):
    """A copy of a model whose recipe says something else."""
    shutil.copytree(trained, folder)
    path = folder / "assets.extra" / "verbatim.json"
    facts = json.loads(path.read_text())
    for section, values in sections.items():
        facts["recipe"][section] = {**facts["recipe"][section], **values}
    path.write_text(json.dumps(facts))
    return str(folder)


@pytest.mark.parametrize(
    "sections, sentence",
    [
        ({"model": {"head": "joint_copy"}}, 'model.head = "joint_copy"'),
        ({"model": {"body": "rnn"}}, 'model.body = "rnn"'),
        ({"model": {"composition": "sum"}}, 'model.composition = "sum"'),
        ({"data": {"source_features": ["tag"]}}, r'data.source_features = \["tag"\]'),
        ({"training": {"ensemble": 2}}, "training.ensemble = 2"),
    ],
)
def test_networks_that_cannot_be_expressed(trained, tmp_path, sections, sentence):
    model = edited(trained, tmp_path / "edited", **sections)
    with pytest.raises(ConversionError, match=f"cannot express {sentence}: it needs"):
        ctranslate2_export.convert(model, str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_keys_of_decoding_without_equivalent(trained, tmp_path):
    changed = {"temperature": 0.5, "long_texts": "truncate", "max_piece_repeats": 2}
    model = edited(trained, tmp_path / "edited", decoding=changed)
    new = str(tmp_path / "new")
    with pytest.raises(ConversionError) as refusal:
        ctranslate2_export.convert(model, new, without=["decoding.long_texts"])
    keys = ["decoding.temperature", "decoding.max_piece_repeats"]
    options = " ".join(f"--without {key}" for key in keys)
    assert str(refusal.value) == (
        f"CTranslate2 has no equivalent of this model's {' and '.join(keys)}: add {options} to "
        "convert the model all the same; its answers may then differ."
    )
    with pytest.raises(ConversionError, match="--without names decoding.glossary, but"):
        ctranslate2_export.convert(model, new, without=["decoding.glossary"])
    facts = ctranslate2_export.convert(model, new, without=[*keys, "decoding.long_texts"])
    assert facts.decoding.temperature == 0 and facts.without == tuple(
        sorted([*keys, "decoding.long_texts"])
    )
    assert ctranslate2_facts.Facts.read(new) == facts


def test_the_command_converts_and_refuses(trained, tmp_path, capsys):
    from pipeline.commands import main

    arguments = ["convert", "--model", str(trained), "--output", str(tmp_path / "new")]
    assert main.main([*arguments, "--quantization", "int8"]) == 0
    assert "tiny, version model, int8" in capsys.readouterr().out
    assert CTranslate2Model(tmp_path / "new").predict(["w1 w2"])[0]["tokens"]
    assert main.main(arguments) == 1
    assert "not empty" in capsys.readouterr().err


def test_folders_are_written_whole_or_not_at_all(trained, tmp_path, monkeypatch):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(ConversionError, match="not empty: name another"):
        ctranslate2_export.convert(str(trained), str(tmp_path / "full"))

    def fails(path, content):
        raise OSError("No space left on device")

    monkeypatch.setattr(ctranslate2_export, "write_json", fails)
    with pytest.raises(OSError):
        ctranslate2_export.convert(str(trained), str(tmp_path / "new"))
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


def test_older_exports_are_refused(trained, tmp_path):
    copy = edited(trained, tmp_path / "copy")
    (tmp_path / "copy" / "assets.extra" / "weights.json").unlink()
    with pytest.raises(ConversionError, match="older version"):
        ctranslate2_export.convert(copy, str(tmp_path / "new"))


def test_the_package_may_be_missing(trained, converted, tmp_path, monkeypatch):
    monkeypatch.setattr(ctranslate2_export.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConversionError, match="'ctranslate2' is not installed.*pip install"):
        ctranslate2_export.convert(str(trained), str(tmp_path / "new"))
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(ConvertedModelError, match="'ctranslate2' is not installed.*pip install"):
        CTranslate2Model(converted)


UNITS = [
    ("greet Ada, and %(name)s!", "bonjour Ada, et %(name)s !"),
    ("international greetings (to Bob).", "salutations (à Bob)."),
    ("delete the page?", "supprimer la page ?"),
]


def peaked(model, transform_output):
    """An untrained network that is sure of what it says, and says no bytes."""
    from pipeline.features import transform_assets, vocabulary_files

    softmax = model.head.vocabulary
    words = transform_assets.read_vocabulary(
        transform_output, vocabulary_files.TARGET_VOCABULARY_FILE
    )
    softmax.kernel.assign(softmax.kernel * 10)
    softmax.bias.assign([-99.0 if "<0x" in str(word) else 0.0 for word in words])
    return model


@pytest.mark.parametrize(
    "units, tokenization, joint", [("subwords", "text", False), ("characters", "whitespace", True)]
)
def test_units_are_cut_and_joined_as_by_the_served_model(
    tmp_path, monkeypatch, units, tokenization, joint
):
    """Untrained, so that any unit follows any other; by greedy search."""
    untrained = tiny_models.untrained
    monkeypatch.setattr(
        tiny_models, "untrained", lambda *inputs: peaked(untrained(*inputs), inputs[1])
    )
    recipe = make_recipe(
        model=NETWORK,
        data={"units": units, "tokenization": tokenization, "max_tokens": 60},
        vocabulary={"joint": joint, "pieces": 300},
        training={"bucket_lengths": [96]},
        decoding={"length_buckets": [16, 64], "keep_protected": False},
    )
    exported = export_tiny(tmp_path, recipe, UNITS, [], [], SIGNATURES, train=False)
    ctranslate2_export.convert(str(exported), str(tmp_path / "new"))
    texts = [source for source, _ in UNITS] + [
        *("Nations greet 朝食 and é!", "  a b\n", "<b>Bob</b>", "12 %", "<0xE3> ￭ [PAD]"),
        "e\u0301te\u0301 <b>greet</b> https://a.b/c the ada",
    ]
    served = ServedModel(exported)
    # Alone, because the longest text of a batch decides how long outputs may be.
    ours = [served.predict([text], "serving_default_no_xla")[0] for text in texts]
    theirs = CTranslate2Model(tmp_path / "new").predict(texts)
    assert len({answer["text"] for answer in ours}) > 5
    for expected, answer in zip(ours, theirs):
        for key in ("text", "tokens", "copied_from", "source_tokens", "unknown_not_copied"):
            assert answer[key] == expected[key], (key, expected["source_tokens"])


def test_placeholders_of_the_vocabulary_cannot_be_guaranteed(trained, tmp_path):
    copy = edited(trained, tmp_path / "copy")
    for name in ("source", "target"):
        path = tmp_path / "copy" / "assets" / f"{name}_vocabulary.txt"
        path.write_text(path.read_text().replace("v3\n", "%s\n"))
    with pytest.raises(ConversionError, match="equivalent of this model's decoding.keep_protected"):
        ctranslate2_export.convert(copy, str(tmp_path / "new"))
    facts = ctranslate2_export.convert(
        copy, str(tmp_path / "new"), without=["decoding.keep_protected"]
    )
    assert not facts.decoding.keep_protected
