"""`verbatim compile`, `request` and `report`: one sentence for bad input."""

import socket

import pytest

RECIPE = "localization_en_fr"


def test_compile_refuses_bad_input(refused, texts):
    def compile_(*more, output=texts / "p.yaml"):
        return refused("compile", RECIPE, "--output", output, *more)

    for item in ("Trainer", "Trainer=", "=image"):
        assert item in compile_("--component-image", item)
    for option in ("--trainer-gpus", "--retries"):
        assert f"{option} must be 0 or more" in compile_(option, "-1")
    assert "--resources needs" in compile_("--resources", "Trainer=8")
    assert "--secret needs" in compile_("--secret", "key")
    assert "must be a folder" in compile_("--data-parameter", "--data", "gs://bucket/pairs.tsv")
    assert "it is a folder" in compile_(output=texts)
    assert "cannot be used" in compile_(output=texts / "pairs.tsv" / "p.yaml")
    assert "'model.head'" in compile_("--set", "model.head=magic")
    sentence = compile_("--component-image", "Trainr=image")
    assert "'Trainr'" in sentence and "Trainer.baseline" in sentence
    assert not (texts / "p.yaml").exists()


def test_request_to_a_dead_address(refused, texts):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    # Bound but not listened at, then closed: nobody answers there.
    sentence = refused("request", "--address", address, "--timeout", 5, "Hello")
    assert (
        sentence
        == f"No server answers at {address}; start one with 'verbatim serve' or check the address."
    )
    assert "it is a folder" in refused("request", "--address", address, "--json", texts, "Hello")


def test_report_refuses_bad_input(refused, texts):
    assert "There is no report in" in refused("report", texts)
    (texts / "report").mkdir()
    (texts / "report" / "facts.json").write_text("{")
    assert "not valid JSON" in refused("report", texts)
    (texts / "report" / "facts.json").write_text('{"systems": 3}')
    assert "expected form" in refused("report", texts)
    assert str(texts / "pairs.tsv") in refused("report", texts / "pairs.tsv")


@pytest.mark.parametrize("command", ["evaluate", "serve", "segment"])
def test_the_folder_of_a_run_is_no_model_but_names_its_models(command, refused, tmp_path):
    more = {"evaluate": ["--data", "x"], "serve": [], "segment": ["x"]}[command]

    def sentence(folder):
        return refused(command, "--model", folder, *more)

    for name, version in (("fr", "1"), ("de", "20")):
        (tmp_path / "models" / name / version).mkdir(parents=True)
        (tmp_path / "models" / name / version / "saved_model.pb").write_bytes(b"")
    models = tmp_path / "models"
    for folder in (tmp_path, models):
        assert sentence(folder) == (
            f"The model folder {folder} contains no version; did you mean {models / 'de'} or "
            f"{models / 'fr'}?"
        )
    assert "did you mean" not in sentence(tmp_path / "absent")
