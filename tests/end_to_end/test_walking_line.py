"""Text files in, a gated and pushed model out, its answers, its report, and a second run from the
cache.
"""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

import pytest

from pipeline.commands import main
from pipeline.lexicons import translation_lexicon
from pipeline.recipes import loading
from pipeline.runners import local_runner
from tests.end_to_end.conftest import OVERRIDES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(finished_run):
    """The pushed model in this process; what XLA has compiled serves every test."""
    from pipeline.export.served_model import ServedModel

    facts, _ = finished_run
    return ServedModel(facts["paths"]["models"])


@pytest.fixture(scope="module")
def server(finished_run):
    """A server of the pushed model, which batches."""
    from serving.batching import Batching
    from serving.server import ModelServer, ServerSettings

    facts, _ = finished_run
    settings = ServerSettings(port=0, rest_port=0, batching=Batching(max_batch_size=4))
    with ModelServer(facts["paths"]["models"], settings) as server:
        yield server


def versions_of(facts):
    """The folders of the versions that were pushed."""
    return [path for path in pathlib.Path(facts["paths"]["models"]).iterdir() if path.is_dir()]


def test_every_record_is_accounted_for(finished_run):
    facts, _ = finished_run
    counts = facts["counts"]
    assert counts["read"] == counts["kept"] + counts["rejected"]
    assert counts["rejected"] == 6
    rejects = pathlib.Path(facts["paths"]["rejects"]).read_text(encoding="utf-8").splitlines()
    assert len(rejects) == 1 + 6
    assert all("pairs.tsv" in line for line in rejects[1:])


def test_all_components_ran_and_said_so(finished_run):
    facts, said = finished_run
    names = [stage["name"] for stage in facts["stages"]]
    # Each needs what those before it wrote.
    chain = ["ParallelTextExampleGen", "Vocabulary", "Lexicon", "TextTransform", "Trainer"]
    chain += ["Exporter", "Evaluator", "Pusher", "Reporter"]
    others = ["StatisticsGen", "SchemaGen", "ExampleValidator"]
    others += ["Trainer.baseline", "Exporter.baseline"]
    assert sorted(names) == sorted(chain + others)
    assert [name for name in names if name in chain] == chain
    announced = re.findall(r"^\[(\d+)/14\] (\S+)$", "\n".join(said), flags=re.MULTILINE)
    assert announced == [(str(number), name) for number, name in enumerate(names, 1)]


def test_the_lexicon_is_learned_from_the_training_pairs(finished_run):
    facts, _ = finished_run
    lexicon = translation_lexicon.read(pathlib.Path(facts["paths"]["lexicon"]).parent)
    for source, target in {
        "Delete": "Supprimer",
        "Open": "Ouvrir",
        "now": "maintenant",
        "file": "fichier",
    }.items():
        assert max(lexicon[source], key=lexicon[source].get) == target


def test_the_copy_model_is_measured_against_the_softmax_model(finished_run):
    facts, _ = finished_run
    by_name = {system["name"]: system["metrics"] for system in facts["systems"]}
    assert list(by_name) == ["pointer_generator", "softmax"]
    # Every placeholder of the test split is unseen: only copying can keep one.
    assert by_name["softmax"]["placeholder_fidelity"]["value"] == 0.0
    assert by_name["pointer_generator"]["placeholder_fidelity"]["value"] > 0.5
    assert set(facts["comparison"]) >= {"bleu", "placeholder_fidelity"}


def test_a_baseline_has_the_signatures_that_measure_it(finished_run):
    from tensorflow.core.protobuf import saved_model_pb2

    facts, _ = finished_run
    pipeline = pathlib.Path(facts["paths"]["output"]) / "pipeline"
    found = {}
    for name in ("Exporter", "Exporter.baseline"):
        (path,) = (pipeline / name).glob("model/*/Format-Serving/saved_model.pb")
        graph = saved_model_pb2.SavedModel.FromString(path.read_bytes()).meta_graphs[0]
        found[name] = {key for key in graph.signature_def if not key.startswith("__")}
    assert found["Exporter.baseline"] == {"serving_default", "score"}
    assert found["Exporter"] > {"serving_default", "score", "explain", "n_best"}


def test_the_evaluator_measured_the_same_as_the_report(finished_run):
    """TFMA decoded on its own, from the same SavedModel and the same test split."""
    import tfx.v1 as tfx

    from pipeline.evaluation import gate
    from pipeline.runners import lineage

    facts, _ = finished_run
    connection = tfx.orchestration.metadata.sqlite_metadata_connection_config(
        str(pathlib.Path(facts["paths"]["output"]) / "metadata.sqlite")
    )
    outputs = lineage.latest_outputs(connection, "localization_en_fr")
    measured = gate.read_metrics(outputs["Evaluator"]["evaluation"])
    for name in ("bleu", "chrf", "placeholder_fidelity", "unseen_copies", "perplexity"):
        found = facts["systems"][0]["metrics"][name]["value"]
        # Probabilities are float32, and a batch's length changes their last digits.
        assert measured[name] == pytest.approx(
            found, rel=1e-4 if name == "perplexity" else 0, abs=1e-6
        )


def test_metrics_and_report_are_written(finished_run):
    facts, _ = finished_run
    metrics = json.loads(pathlib.Path(facts["paths"]["metrics"]).read_text(encoding="utf-8"))
    assert metrics["systems"][0]["metrics"]["bleu"]["signature"]
    page = pathlib.Path(facts["paths"]["report"]).read_text(encoding="utf-8")
    assert "<svg" in page and "pointer_generator" in page
    assert facts["heat_maps"] and facts["samples"] and facts["wins"]
    # Quality by frequency and by length has a picture each, with a line for each model.
    assert "By word frequency" in page and "By length" in page and page.count('class="line"') == 10


def test_a_blessed_model_is_pushed(finished_run):
    facts, _ = finished_run
    assert facts["blessed"], facts["blessing_reason"]
    versions = versions_of(facts)
    assert len(versions) == 1 and (versions[0] / "saved_model.pb").is_file()
    described = json.loads(
        (versions[0] / "assets.extra" / "verbatim.json").read_text(encoding="utf-8")
    )
    assert described["head"] == "pointer_generator"
    # Its card lies beside it, and says what was measured.
    card = json.loads(
        (versions[0].parent / f"model_card_{versions[0].name}.json").read_text(encoding="utf-8")
    )
    assert card["version"] == versions[0].name and card["metrics"] == facts["systems"][0]["metrics"]
    assert (
        pathlib.Path(facts["paths"]["model_card"])
        .read_text(encoding="utf-8")
        .startswith("# Model card")
    )


def test_a_second_run_reuses_everything(finished_run, data_file, recipe):
    facts, _ = finished_run
    again = local_runner.run(recipe, str(data_file), facts["paths"]["output"])
    assert again["systems"] == facts["systems"]
    # A resolver is neither executed nor cached.
    executed = [stage["name"] for stage in again["stages"] if not stage["cached"]]
    assert not [name for name in executed if not name.startswith("LastBlessed")], executed
    # Nothing was trained or pushed again.
    assert len(versions_of(facts)) == 1
    trainings = pathlib.Path(facts["paths"]["output"], "pipeline", "Trainer", "model")
    assert len(list(trainings.iterdir())) == 1


def test_what_reaches_no_threshold_is_not_pushed(finished_run, data_file, recipe):
    """Only the threshold differs, so all but the gate comes from the cache."""
    facts, _ = finished_run
    # However good the model is, it is never certain of every token.
    thresholds = dataclasses.replace(recipe.evaluation.thresholds, perplexity=1.0)
    strict = dataclasses.replace(
        recipe, evaluation=dataclasses.replace(recipe.evaluation, thresholds=thresholds)
    )
    refused = local_runner.run(strict, str(data_file), facts["paths"]["output"])
    assert not refused["blessed"]
    assert "erplexity" in refused["blessing_reason"] and "1.0" in refused["blessing_reason"]
    assert refused["systems"] == facts["systems"]
    assert (
        len(list(pathlib.Path(facts["paths"]["output"], "pipeline", "Trainer", "model").iterdir()))
        == 1
    )
    assert len(versions_of(facts)) == 1


def test_a_model_worse_than_the_last_blessed_one_is_not_pushed(finished_run, data_file):
    """Its answers are cut off after two tokens, so all but export and gate comes from the cache;
    no absolute threshold stops it.
    """
    facts, _ = finished_run
    demands = (
        *(
            "evaluation.change_thresholds.bleu=-0.5",
            'evaluation.slices=["source_length", "unknown_words", "file"]',
        ),
        *("evaluation.slice_change_thresholds.exact_match=-0.01", "evaluation.thresholds.bleu=0"),
        *("evaluation.thresholds.placeholder_fidelity=0", "decoding.keep_protected=false"),
        *("decoding.max_length_factor=0.1", "decoding.max_length_offset=2"),
        "baseline.head=",  # compared is with the last blessed model
    )
    damaged = loading.load_recipe("localization_en_fr", (*OVERRIDES, *demands))
    refused = local_runner.run(damaged, str(data_file), facts["paths"]["output"])
    assert not refused["blessed"]
    assert "below that of the last blessed model" in refused["blessing_reason"]
    assert "on the slice file = pairs.tsv, Exact match is" in refused["blessing_reason"]
    assert "on the slice unknown_words = yes" in refused["blessing_reason"]
    everything = next(one for one in refused["slices"] if one["slice"] == "file = pairs.tsv")
    assert everything["n"] == facts["counts"]["by_split"]["test"]
    assert everything["last_blessed"]["bleu"] == pytest.approx(
        facts["systems"][0]["metrics"]["bleu"]["value"]
    )
    assert (
        len(list(pathlib.Path(facts["paths"]["output"], "pipeline", "Trainer", "model").iterdir()))
        == 1
    )
    assert [path.name for path in versions_of(facts)] == [
        path.name for path in versions_of(refused)
    ]


def test_evaluate_measures_a_pushed_model(finished_run, data_file, tmp_path, capsys):
    facts, _ = finished_run
    held_back = tmp_path / "held_back.jsonl"
    held_back.write_text(
        '{"source": "Delete page %(new)s", "target": "Supprimer la page %(new)s"}\n{"source": "", '
        '"target": "x"}\n',
        encoding="utf-8",
    )
    status = main.main(
        [
            "evaluate",
            "--model",
            facts["paths"]["models"],
            "--data",
            str(held_back),
            "--json",
            str(tmp_path / "m.json"),
        ]
    )
    printed = capsys.readouterr()
    assert status == 0
    assert "left out" in printed.err and "empty source" in printed.err
    written = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))
    assert (written["pairs"], written["rejected"]) == (1, 1)
    assert "bleu" in written["metrics"]


def test_serve_and_request(server, capsys):
    from serving.client import Client, RequestError

    with Client(server.address, timeout=120) as client:
        answers = client.predict(["Delete page %(never_seen)s", "Open folder {{ nor.this }} now"])
        assert "%(never_seen)s" in answers[0].text
        copied = [token for token in answers[0].tokens if token.copied_from is not None]
        assert ("%(never_seen)s", "%(never_seen)s") in [
            (token.text, token.source_token) for token in copied
        ]
        assert len(client.n_best("Close file %(x)s")[0]) == 2
        [score] = client.score(["Delete page %(x)s"], ["Supprimer la page %(x)s"])
        assert score.log_probability < 0 and score.token_count == 5
        with pytest.raises(RequestError, match="has 40 tokens; this model takes at most 16"):
            client.predict("word " * 40)
        with pytest.raises(RequestError, match="empty"):
            client.predict(" ")
    assert main.main(["request", "--address", server.address, "Delete page %(never_seen)s"]) == 0
    assert "%(never_seen)s" in capsys.readouterr().out


def test_answers_do_not_depend_on_their_batch(finished_run, model):
    """Padding, bucket, neighbours and XLA change no token."""
    facts, _ = finished_run
    texts = [sample["source"] for sample in facts["samples"][:11]]
    assert len(texts) == 11  # more than two batches of the largest bucket
    together = model.predict(texts)
    alone = [model.predict([text])[0] for text in texts]
    plain = model.predict(texts, signature="serving_default_no_xla")
    for one, two, three in zip(together, alone, plain):
        for key in ("text", "tokens", "copied_from", "source_tokens"):
            assert one[key] == two[key] == three[key]
        assert one["score"] == pytest.approx(two["score"], abs=1e-4)
        assert one["score"] == pytest.approx(three["score"], abs=1e-4)


def test_many_threads_get_their_own_answers(model):
    texts = [f"Delete page %(thread_{index})s" for index in range(8)]
    answers = {}

    def ask(text):
        answers[text] = model.predict([text])[0]

    threads = [threading.Thread(target=ask, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for text in texts:
        assert answers[text]["source_tokens"] == text.split()


SERVE_MIXED_LENGTHS = """
import sys
from pipeline.export.served_model import ServedModel

model = ServedModel(sys.argv[1])
for batch in (1, 2, 3, 4, 5, 9):
    for length in (1, 3, 7, 8, 9, 12, 16):
        model.predict([" ".join(["page"] * length)] * batch)
"""


def test_compilations_are_bounded_by_the_bucket_list(finished_run, tmp_path):
    """Serving mixed lengths compiles at most once for each pair of buckets."""
    facts, _ = finished_run
    dump = tmp_path / "xla"
    subprocess.run(
        [sys.executable, "-c", SERVE_MIXED_LENGTHS, facts["paths"]["models"]],
        env={
            **os.environ,
            "XLA_FLAGS": f"--xla_dump_to={dump} --xla_dump_hlo_as_text",
            "KERAS_BACKEND": "tensorflow",
        },
        cwd=pathlib.Path(__file__).parents[2],
        check=True,
    )
    # XLA writes one such file for each module that it compiles; the search is the one with loops in
    # it.
    modules = [
        path
        for path in dump.glob("*before_optimizations.txt")
        if " while(" in path.read_text(encoding="utf-8")
    ]
    assert len(modules) == 2 * 2


@pytest.mark.parametrize("batches", [True, False])
def test_the_server_conforms_to_tensorflow_serving(server, batches, monkeypatch, capsys):
    """The suite that is ready to run against TensorFlow Serving's own container runs against the
    embedded server, with and without batching.
    """
    from tests.end_to_end import serving_conformance

    with server.models["localization_en_fr"].use() as servable:
        assert servable._batchers
        if not batches:
            # As a server without batching has it; a second one would compile everything anew.
            monkeypatch.setattr(servable, "_batchers", {})
    arguments = ["--address", server.address, "--rest", server.rest_address]
    status = serving_conformance.main([*arguments, "--model", "localization_en_fr"])
    said = capsys.readouterr().out
    assert status == 0 and "FAILED" not in said and "skipped  " not in said, said
    assert said.count("ok  ") == 20
