"""A glossary of a request: to a server, and to a model in this process."""

import asyncio
import json
import urllib.request

import pytest

from pipeline.commands import main
from serving.client import AsyncClient, Client, RequestError, format_answer
from serving.glossary import Glossary
from serving.model import AsyncModel, Model
from serving.server import ModelServer, ServerSettings
from tests.serving.shouter import Shouter

TERMS = {"save": "enregistrer"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that writes the translations of terms."""
    folder = tmp_path_factory.mktemp("terms") / "shouter"
    Shouter("", reads_terms=True).save(folder / "1")
    return folder


@pytest.fixture(scope="module")
def server(folder):
    with ModelServer(folder, ServerSettings(port=0, rest_port=0)) as server:
        yield server


@pytest.fixture(scope="module", params=["Client", "AsyncClient", "Model", "AsyncModel"])
def ask(request, folder, server):
    """Returns a function of a method's name and its arguments, for each kind of client."""
    make = {"Client": Client, "AsyncClient": AsyncClient, "Model": Model, "AsyncModel": AsyncModel}
    where = str(folder) if "Model" in request.param else server.address

    def ask(method, *arguments, **options):
        if not request.param.startswith("Async"):
            with make[request.param](where) as client:
                return getattr(client, method)(*arguments, **options)

        async def work():
            async with make[request.param](where) as client:
                return await getattr(client, method)(*arguments, **options)

        return asyncio.run(work())

    return ask


def test_a_translation_is_written_and_named(ask):
    answers = ask("predict", ["Save %s", "open"], glossary=TERMS)
    assert [answer.text for answer in answers] == ["enregistrer %s", "OPEN"]
    assert [(token.source_token, token.is_term) for token in answers[0].tokens] == [
        ("Save", True),
        ("%s", False),
    ]
    assert "  enregistrer  <- source token 0 'Save' (glossary)" in format_answer(answers[0])
    (both,) = ask("n_best", "save it", glossary=Glossary(TERMS))
    assert [answer.text for answer in both] == ["enregistrer IT", "enregistrer it"]
    assert ask("predict", "save it")[0].text == "SAVE IT"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"glossary": {}}, "The glossary is empty"),
        ({"glossary": [1]}, "must be a dict from phrases"),
        ({"glossary": TERMS, "features": {"pos": "DT"}}, "takes no glossary: leave it out"),
    ],
)
def test_a_glossary_that_cannot_be_used(ask, options, sentence):
    with pytest.raises(RequestError, match=sentence):
        ask("predict", "save it", **options)


def test_a_model_of_an_older_version_is_named(shared_folder):
    with Model(shared_folder) as model:
        with pytest.raises(RequestError, match="takes no glossary: it is of an older version"):
            model.predict(["open it", "save it"], glossary=TERMS)
        assert model.predict("open it", glossary=TERMS)[0].text == "OPEN IT"


def test_rest_takes_the_markup(server):
    body = json.dumps({"instances": [Glossary(TERMS).mark("save %s")]}).encode()
    url = f"http://{server.rest_address}/v1/models/shouter:predict"
    with urllib.request.urlopen(url, body) as response:
        (prediction,) = json.load(response)["predictions"]
    assert prediction["text"] == "enregistrer %s"


@pytest.mark.parametrize("command", ["translate", "request"])
def test_commands(command, folder, server, tmp_path, capsys):
    (tmp_path / "terms.csv").write_text("save,enregistrer\n", "utf-8")
    (tmp_path / "in.txt").write_text("save it\n", "utf-8")
    glossary = ("--glossary", str(tmp_path / "terms.csv"))
    if command == "translate":
        output = ("--output", str(tmp_path / "out.txt"))
        arguments = [str(tmp_path / "in.txt"), "--model", str(folder), *output]
    else:
        arguments = ["--address", server.address, "save it"]
    assert main.main([command, *arguments, *glossary]) == 0
    made = (tmp_path / "out.txt") if command == "translate" else None
    assert "enregistrer IT" in (made.read_text("utf-8") if made else capsys.readouterr().out)
    (tmp_path / "terms.csv").write_text("save,\n", "utf-8")
    assert main.main([command, *arguments, *glossary]) == 1
    assert "is blank" in capsys.readouterr().err
