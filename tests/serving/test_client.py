"""The client: answers as plain values, failures as one sentence, no import of TensorFlow."""

import asyncio
import concurrent.futures
import inspect
import pathlib
import socket
import subprocess
import sys
import typing

import grpc
import pytest

import serving.client
from serving.client import (
    Answer,
    AsyncClient,
    Client,
    RequestError,
    Score,
    TensorFacts,
    Token,
    VersionStatus,
    format_answer,
)
from tests.serving.scripted_server import PATIENCE
from tests.test_readme import DOCS, README, code_blocks


@pytest.fixture(scope="module")
def client(shared_server):
    with Client(shared_server.address) as client:
        yield client


def test_predict(client):
    first, second = client.predict(["hello %(name)s you", "x"])
    assert first.text == "HELLO %(name)s YOU"
    assert first.score == -3.0
    assert first.tokens == (
        Token("HELLO"),
        Token("%(name)s", 1, "%(name)s", pytest.approx(0.984)),
        Token("YOU"),
    )
    assert second == Answer("X", -1.0, (Token("X"),))  # no padding


def test_predict_takes_one_text_or_any_sequence(client):
    assert [answer.text for answer in client.predict("one")] == ["ONE"]
    assert [answer.text for answer in client.predict(("one", "%s"))] == ["ONE", "%s"]
    assert client.predict([]) == client.n_best([]) == client.score([], []) == []


def test_explain(client):
    padded, _ = client.explain(["save %s", "a b c"])
    assert padded.text == "SAVE %s" and padded.tokens == client.predict("save %s")[0].tokens
    assert padded.source_tokens == ("save", "%s")
    # Without the padding of the longer text beside it.
    assert padded.attention == ((0.75, 0.0), (0.0, 0.75))


def test_n_best(client):
    lists = client.n_best(["Ab %s c", "d"])
    assert [[answer.text for answer in answers] for answers in lists] == [
        ["AB %s C", "ab %s c"],
        ["D", "d"],
    ]
    assert lists[0][1].tokens[1] == Token("%s", 1, "%s", pytest.approx(0.984))
    assert len(lists[1][0].tokens) == 1


def test_score(client):
    assert client.score(["a", "b"], ["x", "y z"]) == [Score(-1.0, 2), Score(-1.5, 3)]
    assert client.score("a", "x") == [Score(-1.0, 2)]
    with pytest.raises(RequestError, match="got 2 sources and 1 targets"):
        client.score(["a", "b"], ["x"])


def test_metadata_and_status(client):
    metadata = client.metadata()
    assert (metadata.name, metadata.version) == ("shouter", 7)
    assert metadata.signatures["score"].inputs["target"] == TensorFacts("string", (-1,))
    assert metadata.signatures["n_best"].outputs["score"] == TensorFacts("float32", (-1, 2))
    assert client.status() == [VersionStatus(7, "AVAILABLE")]


def test_model_and_version_by_name(shared_server):
    with Client(shared_server.address, model="shouter", version=7) as client:
        assert client.predict("a")[0].text == "A"
    with Client(shared_server.address, model="other") as client:
        for call in (lambda: client.predict("a"), client.status, client.metadata):
            with pytest.raises(RequestError, match="this server has shouter") as caught:
                call()
            assert caught.value.code == grpc.StatusCode.NOT_FOUND


def test_refusals_are_the_servers_sentence(client):
    with pytest.raises(RequestError) as caught:
        client.predict(["fine", " "])
    assert str(caught.value) == "source[1] is empty; send a text that is not only white space."
    assert caught.value.code == grpc.StatusCode.INVALID_ARGUMENT
    with pytest.raises(RequestError, match="half a surrogate pair"):
        client.predict("\ud800")
    with pytest.raises(RequestError, match='signature key "sing" not found'):
        client.predict("a", signature="sing")


def test_answers_of_another_kind_of_model(client):
    with pytest.raises(
        RequestError, match='does not answer as a Verbatim model does: see its output "text"'
    ):
        client.predict("a", signature="n_best")  # there are no lists in a plain answer
    with pytest.raises(
        RequestError,
        match='The signature "count" of .* does not answer as a Verbatim model does',
    ):
        client.predict("a", signature="count")


def test_no_server():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with Client(address, attempts=1) as client, pytest.raises(RequestError) as caught:
            client.predict("a")
    assert caught.value.code == grpc.StatusCode.UNAVAILABLE
    assert (
        str(caught.value)
        == f"No server answers at {address}; start one with 'verbatim serve' or check the address."
    )


def test_packed_tensors_and_positions_out_of_range(scripted_server):
    with Client(scripted_server.address, model="any") as client:
        (answer,) = client.predict("pack")
    assert answer.score == 1.5
    assert answer.tokens == (Token("x", 2, "t", 0.5), Token("y", copy_probability=0.25))


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("RESOURCE_EXHAUSTED", "answered RESOURCE_EXHAUSTED: as the script says"),
        ("UNIMPLEMENTED", "does not offer this request"),
        ("DEADLINE_EXCEEDED", "did not answer within 20 seconds"),
        ("INTERNAL", "answered INTERNAL: as the script says"),
    ],
)
def test_other_failures(scripted_server, text, sentence):
    with Client(scripted_server.address, timeout=20) as client:
        with pytest.raises(RequestError, match=sentence) as caught:
            client.predict(text)
    assert caught.value.code.name == text
    assert "\n" not in str(caught.value)


def test_batches_are_answered_in_the_order_of_the_texts(shared_server):
    texts = [f"text {number}" for number in range(40)]
    upper = [text.upper() for text in texts]
    # By default, or in one request, they are more than this server takes at once.
    for size in ({}, {"batch_size": None}, {"batch_size": 16}):
        with Client(shared_server.address, **size) as client:
            assert [answer.text for answer in client.predict(texts)] == upper
    with Client(shared_server.address) as client:
        assert [second.text for _, second in client.n_best(texts)] == texts
        assert client.score(texts, ["one", "one two"] * 20) == [Score(-1.0, 2), Score(-1.5, 3)] * 20


TOO_LONG = "one two three four five six seven eight nine"


@pytest.mark.parametrize("size", [1, 7, 32, None])
def test_a_refused_text_costs_the_others_nothing(ask_texts, shared_server, size):
    texts = [f"text {number}" for number in range(40)]
    texts[17], texts[18], texts[39] = " ", TOO_LONG, "\ud800"
    expected = [text.upper() for text in texts]
    reasons = [
        "source[17] is empty; send a text that is not only white space.",
        "Text 18, counted from 0: A text has more than 8 tokens",
        'Text 39, counted from 0: A text of "source" holds half a surrogate pair',
    ]
    answers = ask_texts(shared_server.address, texts, size, return_exceptions=True)
    with pytest.raises(RequestError) as caught:
        ask_texts(shared_server.address, texts, size)
    assert str(caught.value) == f"{reasons[0]} 3 of 40 texts were refused."
    assert caught.value.index == 17 and caught.value.code == grpc.StatusCode.INVALID_ARGUMENT
    for found in (answers, caught.value.answers):
        errors = [found[place] for place in (17, 18, 39)]
        for error, reason, place in zip(errors, reasons, (17, 18, 39)):
            assert str(error).startswith(reason) and error.index == place
        assert [
            expected[place] if place in (17, 18, 39) else found[place].text for place in range(40)
        ] == expected


@pytest.fixture(params=["sync", "async"])
def ask_texts(request):
    """Function that asks for texts, by either client."""

    def sync(address, texts, size, **options):
        with Client(address, batch_size=size) as client:
            return client.predict(texts, **options)

    async def later(address, texts, size, options):
        async with AsyncClient(address, batch_size=size, concurrency=1) as client:
            return await client.predict(texts, **options)

    if request.param == "sync":
        return sync
    return lambda *arguments, **options: asyncio.run(later(*arguments, options))


def test_a_call_that_is_wrong_as_a_whole_ends_soon(scripted_server):
    # Every text is refused, for a reason that names none of them.
    scripted_server.script.extend(["INVALID_ARGUMENT"] * 1000)
    with Client(scripted_server.address) as client, pytest.raises(RequestError) as caught:
        client.predict(["a"] * 2000, return_exceptions=True)
    assert str(caught.value) == "as the script says" and caught.value.answers is None
    assert len(scripted_server.seen) < 20


def test_what_was_answered_before_a_failure_is_kept(ask_texts, scripted_server):
    scripted_server.script.extend(["a", "INTERNAL"])
    with pytest.raises(RequestError, match="Texts 2 to 3, .* answered INTERNAL") as caught:
        ask_texts(scripted_server.address, ["a", "b", "c", "d", "INTERNAL", "f"], 2)
    assert [answer.text for answer in caught.value.answers[:2]] == ["a", "b"]
    assert caught.value.answers[2:4] == [None] * 2


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ((None,), "texts must be a str or several, such as a list of str; got None."),
        ((b"Save",), "texts must be .*; got bytes, to be decoded first."),
        ((5,), "texts must be .*; got int."),
        (({"a": "b"},), "texts must be .*; got dict."),
        ((["a", None],), r"texts\[1\] must be a str; got None."),
        ((["a", b"b"],), r"texts\[1\] must be a str; got bytes, to be decoded first."),
        ((["a"], None), "signature must be a str; got None."),
        ((["a"], "\ud800"), "signature holds half a surrogate pair"),
        ((["a"], "x", ["A"]), "features must be a dict from columns to texts; got list."),
        ((["a"], "x", {"pos": [1]}), r'features\["pos"\]\[0\] must be a str; got int.'),
        ((["a"], "x", {1: ["A"]}), "the name of a column of features must be a str; got int."),
    ],
)
def test_arguments_of_another_type(arguments, sentence):
    with Client("127.0.0.1:1") as client, pytest.raises(RequestError, match=sentence):
        client.predict(*arguments)


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"model": 5}, "model must be a str; got int."),
        ({"timeout": "5"}, "timeout must be a number of seconds above 0, or None; got '5'."),
        ({"timeout": 0}, "timeout must be .*; got 0."),
        ({"version": "7"}, "version must be a whole number; got '7'."),
        ({"version": 2**63}, "version must be 0 to 9223372036854775807; got 9223372036854775808."),
        ({"batch_size": 1.5}, "batch_size must be a whole number; got 1.5."),
        ({"attempts": True}, "attempts must be a whole number; got True."),
    ],
)
def test_settings_of_another_type(options, sentence):
    with pytest.raises(RequestError, match=sentence):
        Client("127.0.0.1:1", **options)


def test_batches_take_their_features_along(scripted_server):
    with Client(scripted_server.address, batch_size=2) as client:
        client.predict(["a", "b", "c"], features={"pos": ["A", "B", "C"]})
        with pytest.raises(
            RequestError, match="Text 2, counted from 0: A text of .source. holds half a surrogate"
        ):
            client.predict(["a", "b", "\ud800"])
    sent = [seen.inputs for seen in scripted_server.seen]
    assert sent[:2] == [{"source": ["a", "b"], "pos": ["A", "B"]}, {"source": ["c"], "pos": ["C"]}]


def test_one_connection_for_all_requests_of_all_threads(scripted_server):
    texts = [f"text {number}" for number in range(32)]
    with (
        Client(scripted_server.address) as client,
        concurrent.futures.ThreadPoolExecutor(8) as pool,
    ):
        answers = list(pool.map(client.predict, texts))
    assert [answer.text for (answer,) in answers] == texts
    assert len({seen.connection for seen in scripted_server.seen}) == 1


def test_a_closed_client_says_so(scripted_server):
    client = Client(scripted_server.address)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.predict, "hang")
        assert scripted_server.hanging.acquire(timeout=PATIENCE)
        client.close()
        client.close()
        for ask in (waiting.result, lambda: client.predict("a"), client.status):
            with pytest.raises(
                RequestError, match=f"The client of {scripted_server.address} is closed."
            ) as caught:
                ask()
            assert caught.value.code == grpc.StatusCode.CANCELLED
    assert scripted_server.given_up.acquire(timeout=PATIENCE)


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("attempts", [0, 6])
def test_numbers_out_of_range(kind, attempts):
    with pytest.raises(RequestError, match=f"attempts must be 1 to 5, .*; got {attempts}"):
        kind("127.0.0.1:1", attempts=attempts)
    with pytest.raises(RequestError, match="batch_size must be 1 or more; got 0"):
        kind("127.0.0.1:1", batch_size=0)
    if kind is AsyncClient:
        with pytest.raises(RequestError, match="concurrency must be 1 or more; got 0"):
            kind("127.0.0.1:1", concurrency=0)


def test_both_clients_are_called_alike():
    for name, method in vars(Client).items():
        if not name.startswith("_"):
            twin = getattr(AsyncClient, name)
            assert inspect.signature(twin) == inspect.signature(method), name
            assert inspect.iscoroutinefunction(twin), name
            assert typing.get_type_hints(twin) == typing.get_type_hints(method) != {}, name


def test_the_programs_of_the_readme(shared_server, shared_folder, capsys):
    pages = (README, DOCS / "guides" / "serving.md")
    blocks = [
        block for page in pages for block in code_blocks("python", page) if "serving" in block
    ]
    said, names = [], {}
    for block in blocks:
        program = block.replace("127.0.0.1:8500", shared_server.address)
        program = program.replace("build/demo/models/localization_en_fr", str(shared_folder))
        program = program.replace("rest_port=8501", "port=0, rest_port=0")
        assert program != block
        exec(compile(program, "README.md", "exec"), names)
        said.append(capsys.readouterr().out.splitlines())
    of_readme, of_guide, best, refused, of_model, of_server = said
    names["server"].stop(0)
    assert of_server == [] and ".po" in names["settings"].files.suffixes
    assert of_readme == [
        "DELETE THE PAGE %(zebra_title)s? [('%(zebra_title)s?', '%(zebra_title)s?')]"
    ]
    assert of_guide == [
        "DELETE THE PAGE %(zebra_title)s?",
        "%(zebra_title)s? was copied from %(zebra_title)s?",
    ]
    assert best[0].startswith("[[Answer(text='DELETE THE PAGE %(zebra_title)s?'")
    assert "text='save'" in best[0]
    assert of_model == of_guide[:1]
    assert refused == ["source[1] is empty; send a text that is not only white space.", "1"]
    assert [type(answer) for answer in names["answers"]] == [Answer, RequestError, Answer]


def test_format_answer():
    copied = Token("%(name)s", 3, "%(name)s", 0.984)
    answer = Answer("Bonjour, %(name)s", -0.1, (Token("Bonjour"), Token("￭,"), copied))
    assert format_answer(answer) == (
        "Bonjour, %(name)s\n  %(name)s  <- source token 3 '%(name)s' (copy probability 0.98)"
    )
    assert format_answer(Answer("Oui", -0.1, (Token("Oui"),))) == "Oui"


def run_python(program):
    root = pathlib.Path(serving.client.__file__).parent.parent
    command = [sys.executable, "-W", "ignore", "-c", program]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60)


def test_a_client_imports_grpc_and_protobuf_alone(shared_server):
    done = run_python(
        f"""
import sys
from serving.client import Client
with Client({shared_server.address!r}) as client:
    assert client.predict("a")[0].text == "A"
    assert client.status() and client.metadata()
heavy = {{"tensorflow", "tensorflow_serving", "numpy", "keras", "tfx"}} & set(sys.modules)
assert not heavy, heavy
print("good")
"""
    )
    assert done.stdout == "good\n", done.stderr
