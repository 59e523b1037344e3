"""A model in this process: the answers, errors and types of a client."""

import asyncio
import concurrent.futures
import subprocess
import sys

import grpc
import pytest

import serving
from serving.client import AsyncClient, Client, RequestError
from serving.errors import ServeError
from serving.model import AsyncModel, Model

# One refused text of each kind: empty, and too long for the model.
MIXED = ["save %s", " ", "open", "a b c d e f g h i", "close %d now"]


@pytest.fixture(scope="module")
def model(shared_folder):
    """A loaded model that computes batches of two texts, two at the same time."""
    with Model(shared_folder, batch_size=2, concurrency=2) as loaded:
        yield loaded


@pytest.fixture
def client(shared_server):
    with Client(shared_server.address, batch_size=2) as connected:
        yield connected


def outcome(work):
    """Returns what a call returns, or all that its error says."""
    try:
        return described(work())
    except RequestError as error:
        return described(error)


def described(value):
    if isinstance(value, list):
        return [described(one) for one in value]
    if isinstance(value, RequestError):
        return (str(value), value.code, value.index, value.reason, described(value.answers))
    return value


@pytest.mark.parametrize(
    "ask",
    [
        lambda one: one.predict("save %s"),
        lambda one: one.predict([]),
        lambda one: one.predict(["a", "b c d", "%s b", "a b", "c"]),
        lambda one: one.predict(MIXED),
        lambda one: one.predict(MIXED, return_exceptions=True),
        lambda one: one.predict(" "),
        lambda one: one.predict("a", "no_such_signature"),
        lambda one: one.predict("a", features={"pos": "DT"}),
        lambda one: one.predict("half \ud800"),
        lambda one: one.predict(b"bytes"),
        lambda one: one.predict("a", timeout=-1),
        lambda one: one.n_best(["save %s", "a", "b"]),
        lambda one: one.explain(["save %s", "a", "b c d"]),
        lambda one: one.explain(MIXED, return_exceptions=True),
        lambda one: one.score(["a b", "c", "d"], ["a", "b c", "d e f"]),
        lambda one: one.score(["a b", "c"], ["a"]),
        lambda one: one.metadata(),
        lambda one: one.status(),
    ],
)
def test_it_answers_as_a_client(model, client, ask):
    assert outcome(lambda: ask(model)) == outcome(lambda: ask(client))


def test_a_text_is_at_most_as_long_as_on_a_server(model):
    with pytest.raises(RequestError, match="16384") as caught:
        model.predict(["a", "x" * 16385])
    assert caught.value.index == 1 and caught.value.answers[0].text == "A"


def test_answers_have_the_places_of_their_texts(model):
    texts = [" ".join(["w"] * (1 + 5 * n % 7)) for n in range(23)]
    assert [answer.text for answer in model.predict(texts)] == [text.upper() for text in texts]


def test_threads_share_it(model):
    texts = [f"text {n}" for n in range(40)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(model.predict, texts))
    assert [answer.text for (answer,) in answers] == [text.upper() for text in texts]


def test_asyncio(shared_folder):
    async def ask():
        async with AsyncModel(shared_folder) as model:
            both = asyncio.gather(model.predict("save %s"), model.n_best(["a", "B"]))
            with pytest.raises(RequestError) as caught:
                await model.predict(MIXED)
            return await both, caught.value

    ((best,), lists), error = asyncio.run(ask())
    assert best.text == "SAVE %s"
    assert [[answer.text for answer in beam] for beam in lists] == [["A", "a"], ["B", "b"]]
    assert error.index == 1 and error.answers[4].text == "CLOSE %d NOW"


def test_the_methods_are_those_of_a_client():
    for own, other in ((Model, Client), (AsyncModel, AsyncClient)):
        assert {name for name in dir(other) if name[0] != "_"} == {
            name for name in dir(own) if name[0] != "_"
        }


def test_a_call_that_is_too_late_is_not_computed(model):
    with pytest.raises(RequestError, match="did not answer within 1e-09 seconds") as caught:
        model.predict(["a", "b", "c"], timeout=1e-9)
    assert caught.value.code == grpc.StatusCode.DEADLINE_EXCEEDED


def test_a_closed_model_says_so(shared_folder):
    model = Model(shared_folder)
    model.close()
    with pytest.raises(RequestError, match="is closed"):
        model.predict("a")


def test_a_version_s_folder(shared_folder):
    with Model(shared_folder / "7") as model:
        assert model.metadata().version == 7


def test_no_model(tmp_path):
    with pytest.raises(ServeError, match="does not exist"):
        Model(tmp_path / "none")


@pytest.mark.parametrize("option", [{"batch_size": 0}, {"timeout": 0}, {"concurrency": 0}])
def test_bad_options(shared_folder, option):
    with pytest.raises(RequestError, match=next(iter(option))):
        Model(shared_folder, **option)


def test_a_client_needs_no_tensorflow():
    code = (
        "import sys; from serving import Client, RequestError; print('tensorflow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
    assert serving.Model is Model
    with pytest.raises(AttributeError):
        serving.Modell  # noqa: B018


@pytest.mark.parametrize("long_seconds, returned", [(0.0, 1), (60.0, 0)])
def test_memory_is_returned_after_a_long_call(model_folder, monkeypatch, long_seconds, returned):
    """XLA compiled in it."""
    calls = []
    monkeypatch.setattr("serving.model._LONG_SECONDS", long_seconds)
    with Model(model_folder) as model:
        monkeypatch.setattr("serving.model.memory.give_back", lambda: calls.append(1))
        model.predict("a")
    assert len(calls) == returned
