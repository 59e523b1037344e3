"""`verbatim serve`: one sentence for bad input, and as many batches as there are cores for."""

import logging
import os
import re
import socket
import subprocess
import sys

import pytest

from pipeline.commands import main
from tests.pipeline.commands.saved_models import save_model


def test_serve_refuses_bad_input(refused, texts):
    model = texts / "model"
    sentence = "s3://bucket/models/m cannot be read: this server reads folders and gs:// addresses"
    assert sentence in refused("serve", "--model", "s3://bucket/models/m", "--port", 0)
    config = texts / "bucket.config"
    config.write_text(
        'model_config_list { config { name: "m" base_path: "s3://bucket/models/m" } }'
    )
    assert sentence in refused("serve", "--config", config, "--port", 0)
    assert "does not exist" in refused("serve", "--model", model, "--port", 0)
    model.mkdir()
    sentence = refused("serve", "--model", model, "--port", 0)
    assert str(model) in sentence and "version" in sentence
    save_model(model / "1", {"serving_default": ["text"]})
    with socket.socket() as occupied:
        occupied.bind(("127.0.0.1", 0))
        occupied.listen()
        port = occupied.getsockname()[1]
        assert refused("serve", "--model", model, "--port", port) == (
            f"Port {port} is already in use; choose another with --port."
        )
    assert "0 to 65535" in refused("serve", "--model", model, "--port", 65536)
    assert "--batch-size must be 1 or more" in refused("serve", "--model", model, "--batch-size", 0)
    assert "--batch-delay 0 or more" in refused(
        "serve", "--model", model, "--batch-size", 8, "--batch-delay", -1
    )
    for number in (0, 4097):
        sentence = refused("serve", "--model", model, "--threads-per-batch", number)
        assert "a batch can have 1 to" in sentence and f"of this machine; got {number}." in sentence
    assert "nowhere.config cannot be read" in refused("serve", "--config", texts / "nowhere.config")
    sentence = refused("serve", "--model", model, "--batching-config", texts / "nowhere.config")
    assert "batching config file" in sentence and "cannot be read" in sentence
    assert "both a key and a certificate" in refused(
        "serve", "--model", model, "--port", 0, "--tls-key", "x"
    )
    tls = ("--tls-key", texts / "absent.pem", "--tls-certificate", texts / "absent.pem")
    assert str(texts / "absent.pem") in refused("serve", "--model", model, "--port", 0, *tls)


def test_a_server_imports_neither_keras_nor_tfx(tmp_path):
    """They take seconds of a start. A port that is taken ends it early."""
    save_model(tmp_path / "model" / "1", {"serving_default": ["text"]})
    with socket.socket() as occupied:
        occupied.bind(("127.0.0.1", 0))
        occupied.listen()
        port = str(occupied.getsockname()[1])
        command = (sys.executable, "-X", "importtime", "-m", "pipeline.commands.main", "serve")
        ended = subprocess.run(
            [*command, "--model", tmp_path / "model", "--port", port, "--rest-port", "0"],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
    assert ended.returncode == 1 and "already in use" in ended.stderr
    imported = set(re.findall(r"^import time:.*\| +(\w+)[.\w]*$", ended.stderr, re.MULTILINE))
    assert {"tensorflow", "aiohttp", "grpc"} <= imported
    assert not {"keras", "tf_keras", "tfx", "IPython"} & imported


@pytest.mark.parametrize(
    "options, at_once, workers, delay",
    [
        (["--batch-size", 16], 1, 32, (0.002, 0)),
        (["--batch-size", 16, "--threads-per-batch", 4], 1, 32, (0.002, 0)),
        (["--batch-size", 16, "--threads-per-batch", 1], 4, 80, (0.002, 0.2)),
        (["--batch-size", 16, "--threads-per-batch", 1, "--batch-delay", 0], 4, 80, (0, 0)),
        (["--batching-config", "batching", "--threads-per-batch", 2], 2, 96, (0.002, 0)),
        (["--batching-config", "threads", "--threads-per-batch", 2], 3, 128, (0.002, 0)),
    ],
)
def test_a_server_runs_as_many_batches_as_it_has_cores_for(
    texts, monkeypatch, options, at_once, workers, delay
):
    from serving import processors, server

    asked = {}
    monkeypatch.setattr(processors, "cores", lambda: 4)
    monkeypatch.setattr(
        server, "serve", lambda models, settings, *rest, **more: asked.update(vars(settings))
    )
    for name in ("TF_NUM_INTRAOP_THREADS", "VERBATIM_THREADS_PER_BATCH"):
        monkeypatch.setenv(name, "")
    monkeypatch.chdir(texts)
    (texts / "batching").write_text("max_batch_size { value: 32 }")
    (texts / "threads").write_text("num_batch_threads { value: 3 }")
    assert main.main([str(argument) for argument in ("serve", "--model", texts, *options)]) == 0
    assert asked["batching"].parallel == at_once
    assert asked["max_workers"] == workers
    assert (asked["batching"].delay_seconds, asked["batching"].delay_share) == delay


def test_pairs_of_languages_that_are_given_back(texts, monkeypatch, refused):
    from serving import server

    asked = {}
    monkeypatch.setattr(
        server, "serve", lambda models, settings, *rest, **more: asked.update(vars(settings))
    )
    echoes = ("--echo", "en,de", "--echo", "en,pt-BR")
    assert main.main(["serve", "--model", str(texts), *echoes]) == 0
    assert asked["echoes"] == (("en", "de"), ("en", "pt-BR"))
    assert "two codes such as en,de; got 'en'" in refused("serve", "--model", texts, "--echo", "en")


def test_what_the_server_logs_is_shown_on_standard_error(texts, monkeypatch, capsys):
    from serving import server

    def serve(*arguments, announce, **options):
        logging.getLogger("serving.model_versions").info("Loading x version 1.")
        logging.getLogger("serving.model_versions").warning("x is rolled back.")
        announce("Serving x")

    monkeypatch.setattr(server, "serve", serve)
    assert main.main(["serve", "--model", str(texts)]) == 0
    out, err = capsys.readouterr()
    assert out == "Serving x\n"
    assert [line.split(" ", 2)[2] for line in err.splitlines()] == [
        f"INFO Loading TensorFlow, then {texts}.",
        "INFO Loading x version 1.",
        "WARNING x is rolled back.",
    ]
    logging.getLogger("serving").info("Nobody listens any more.")
    assert capsys.readouterr().err == ""
