"""Terms of a glossary in an exported model that never saw any: the guarantee holds."""

import pytest

from pipeline.export.served_model import ModelError, ServedModel
from serving.glossary import Glossary
from serving.model import Model
from tests.pipeline.export.tiny_models import export_tiny, make_recipe

pytestmark = pytest.mark.slow

ROWS = [
    ("open the file", "ouvrir le fichier"),
    ("close the page", "fermer la page"),
    ("open %s", "ouvrir %s"),
    ("close the %d files", "fermer les %d fichiers"),
]
SIGNATURES = ("serving_default", "serving_default_no_xla", "n_best", "explain")
TERMS = {"homepage": "page d'accueil", "home page": "Page d'Accueil", "file": "dossier"}


def exported(folder, signatures=SIGNATURES, train=True, **sections):
    """Returns the folder of a model of `ROWS`."""
    words = [sorted({word for row in ROWS for word in row[side].split()}) for side in (0, 1)]
    recipe = make_recipe(
        **{
            "data": {"tokenization": "text"},
            "decoding": {"beam_size": 2, "n_best": 2},
            **sections,
        }
    )
    path = export_tiny(folder, recipe, ROWS, *words, signatures, train=train)
    return path.rename(folder / "1")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = exported(tmp_path_factory.mktemp("terms")).parent
    with Model(folder) as loaded:
        yield loaded


@pytest.mark.parametrize(
    ("text", "translations"),
    [
        ("open the homepage", ["page d'accueil"]),
        ("homepage homepage homepage", ["page d'accueil"] * 3),
        ("close the home page, file %s", ["Page d'Accueil", "dossier"]),
        ("CLOSE THE HOMEPAGE", ["PAGE D'ACCUEIL"]),
        ("close unknown words of no model, homepage of file", ["page d'accueil", "dossier"]),
        ('<a href="homepage">homepage</a> {homepage}', ["page d'accueil"]),
        ("\ufff9a\ufffab\ufffb homepage", ["page d'accueil"]),
    ],
)
def test_each_translation_stands_as_often_as_its_term(model, text, translations):
    signatures = {"n_best": model.n_best, "serving_default": model.predict}
    for signature in (*SIGNATURES, "n_best"):
        answers = signatures.get(signature, model.predict)(
            text, signature=signature, glossary=TERMS
        )
        for answer in answers[0] if signature == "n_best" else answers:
            written = [token.text for token in answer.tokens if token.is_term]
            lower = answer.text.lower()
            assert sorted(map(str.lower, written)) == sorted(map(str.lower, translations))
            assert all(lower.count(one.lower()) == translations.count(one) for one in translations)
            assert "\0" not in answer.text and "\ufff9h" not in answer.text


def test_a_glossary_of_the_model(tmp_path):
    """It is for texts without terms of a request, in the graph: no client marks anything."""
    (tmp_path / "terms.csv").write_text("homepage,page d'accueil\n", "utf-8")
    decoding = {"beam_size": 2, "n_best": 2, "glossary": str(tmp_path / "terms.csv")}
    folder = exported(tmp_path, ("serving_default", "n_best"), train=False, decoding=decoding)
    (tmp_path / "terms.csv").unlink()
    served = ServedModel(folder)
    texts = ["Homepage of the homepage", "open the file", Glossary({"file": "x"}).mark("a file")]
    answers = served.predict(texts)
    assert answers[0]["text"].lower().count("page d'accueil") == 2
    assert "page d'accueil" not in answers[1]["text"] + answers[2]["text"]
    assert answers[2]["tokens"].count("x") == 1
    assert answers[0]["source_tokens"][0] == "Homepage"


def test_texts_of_terms_alone_pass_through(model):
    (answer,) = model.predict(" Homepage: %s! ", glossary=TERMS)
    assert answer.text == " Page d'accueil: %s! " and answer.score == 0
    assert answer.tokens[0].source_token == "Homepage"


def test_without_terms_nothing_changes(model):
    texts = ["open the file", "close %s page", "\ufff9 ￭"]
    assert model.predict(texts, glossary={"nothing": "rien"}) == model.predict(texts)
    assert model.predict("open the file")[0].text == "ouvrir le fichier"


def test_a_glossary_does_not_change_what_is_beside_it(model):
    asked = ["open the homepage", "close the page", "open %s"]
    together = model.predict(asked, glossary={"homepage": "x"})
    apart = [model.predict(text, glossary={"homepage": "x"})[0] for text in asked]
    assert [answer.text for answer in together] == [answer.text for answer in apart]


@pytest.mark.parametrize(
    "sections",
    [{"model": {"head": "softmax"}}, {"decoding": {"keep_protected": False}}],
)
def test_a_model_that_cannot_promise_it_refuses_terms(tmp_path, sections):
    served = ServedModel(exported(tmp_path, ("serving_default",), train=False, **sections))
    marked = Glossary(TERMS).mark("open the homepage")
    with pytest.raises(ModelError, match="This model takes no glossary"):
        served.predict([marked])
    assert served.predict(["open the page"])


def test_a_training_with_terms(tmp_path):
    """The model learns where the class of terms goes, and never writes its name."""
    nouns = {f"noun{letter}": f"nom{letter}" for letter in "abcdefghijklmnop"}
    rows = [
        (f"delete the {noun} now", f"maintenant supprimer {nom}") for noun, nom in nouns.items()
    ]
    sections = {
        "data": {"tokenization": "text", "term_share": 1.0},
        "lexicon": {"kind": "learned"},
        "training": {"epochs": 40},
    }
    words = [
        [*"delete the now".split(), *nouns],
        [*"maintenant supprimer".split(), *nouns.values()],
    ]
    lexicon = {noun: {nom: 1.0} for noun, nom in nouns.items()}
    path = export_tiny(
        tmp_path, make_recipe(**sections), rows, *words, ("serving_default",), lexicon
    )
    path.rename(tmp_path / "1")
    with Model(tmp_path) as model:
        answers = model.predict(
            ["delete the zebra now", "delete the nounb now", "delete the nounc now"],
            glossary={"zebra": "le zèbre", "nounc": "autre"},
        )
    texts = [answer.text for answer in answers]
    assert texts[0] == "maintenant supprimer le zèbre"
    assert texts[1].startswith("maintenant supprimer nom")
    assert texts[2] == "maintenant supprimer autre"


@pytest.mark.parametrize(
    "data", [{"tokenization": "whitespace"}, {"units": "subwords"}, {"lowercase": True}]
)
def test_other_tokens(tmp_path, data):
    sections = {"data": {"tokenization": "text", **data}}
    if "units" in data:
        sections["vocabulary"] = {"pieces": 300}
    folder = exported(tmp_path, ("serving_default",), train=False, **sections).parent
    with Model(folder) as model:
        (answer,) = model.predict("Open the homepage , file", glossary=TERMS)
    assert answer.text.count("page d'accueil") == answer.text.count("dossier") == 1
