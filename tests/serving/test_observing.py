"""What a server counts of its requests: texts that were answered, requests that run, versions."""

import types

import pytest

from serving import observing


def numbers(observer, models=()):
    """The samples of a server's metrics, by name and labels."""
    text, _ = observer.metrics(dict(models))
    lines = (line for line in text.decode().splitlines() if line[0] != "#")
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_texts_are_counted_where_they_were_answered():
    observer = observing.Observer()
    for code in ("OK", "INVALID_ARGUMENT", "OK"):
        with observer.request("grpc", "Predict") as seen:
            seen.model, seen.signature, seen.texts, seen.code = "m", "n_best", 3, code
    assert numbers(observer)['verbatim_texts_total{model="m",signature="n_best"}'] == 6


def test_a_request_runs_until_it_ends_or_fails():
    observer = observing.Observer()
    with observer.request("grpc", "Predict"):
        with pytest.raises(KeyError), observer.request("grpc", "Predict"):
            assert numbers(observer)["verbatim_running_requests"] == 2
            raise KeyError
        assert numbers(observer)["verbatim_running_requests"] == 1
    assert numbers(observer)["verbatim_running_requests"] == 0


def test_a_version_is_shown_as_long_as_it_answers():
    def model(*states):
        found = [types.SimpleNamespace(version=v, state=state) for v, state in states]
        return types.SimpleNamespace(states=lambda: found)

    def versions(*states):
        found = numbers(observer, {"m": model(*states)})
        return [name for name in found if name.startswith("verbatim_model_version_available")]

    observer = observing.Observer()
    name = 'verbatim_model_version_available{{model="m",version="{}"}}'
    assert versions((2, "LOADING"), (1, "AVAILABLE")) == [name.format(1)]
    assert versions((2, "AVAILABLE"), (1, "END")) == [name.format(2)]


@pytest.mark.parametrize(
    "sent, valid",
    [("a" * 128, True), ("a:/+=-.9_Z", True), ("a" * 129, False), ("", False), (None, False)]
    + [("a b", False), ("a\n", False), ("é", False)],
)
def test_an_id_is_the_clients_where_it_is_valid(sent, valid):
    found = observing.request_id(sent)
    assert found == sent if valid else len(found) == 32 and found != observing.request_id(sent)
