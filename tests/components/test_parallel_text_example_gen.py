"""The example gen as a Beam pipeline, in a LocalDagRunner with its cache, and as Kubeflow's
containers run it.
"""

import json
import os

import pytest
import tensorflow as tf
from tfx.components import StatisticsGen
from tfx.orchestration import metadata
from tfx.orchestration import pipeline as tfx_pipeline
from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
from tfx.types import artifact_utils, standard_artifacts
from tfx.types.experimental import simple_artifacts

from components.parallel_text_example_gen import component, duplicates, executor, pair_writer
from pipeline.readers import DataError
from pipeline.readers.files import LocalFiles, RemoteFiles, count_lines, raw_lines
from pipeline.readers.records import LEFT_OUT, NOT_TRANSLATABLE, OTHER_LANGUAGES
from pipeline.readers.splits import SPLITS, split_of
from pipeline.recipes.recipe import Recipe
from pipeline.recipes.sections import DataConfig, TrainingConfig
from tests import kubeflow

CONFIG = DataConfig(eval_share=0.3, test_share=0.3, max_rejected_share=0.6)
RECIPE = Recipe(name="test", data=CONFIG)


def write_data(folder, pairs=40):
    """Writes `a.tsv` with distinct pairs, `b.tsv` with repeated, empty and unreadable records."""
    folder.mkdir(exist_ok=True)
    lines = [f"hello number {number}\tbonjour numéro {number}" for number in range(pairs)]
    (folder / "a.tsv").write_text("\n".join(lines))
    bad = [lines[0], lines[0], lines[3], "", "tab\\slash\t", "new\t\u2028nouveau"]
    (folder / "b.tsv").write_bytes("\n".join(bad).encode() + b"\n\xff\tx\n")
    (folder / "notes.md").write_text("not data")
    return folder


def run(data, output, config=CONFIG, beam_args=(), longest_test=None):
    """Runs the executor alone; returns (rows of each split, rows of rejects.tsv, counts)."""
    examples, rejects = standard_artifacts.Examples(), simple_artifacts.File()
    examples.uri, rejects.uri = str(output / "examples"), str(output / "rejects")
    context = executor.Executor.Context(
        beam_pipeline_args=list(beam_args), tmp_dir=str(output), unique_id="1"
    )
    executor.Executor(context).Do(
        {},
        {"examples": [examples], "rejects": [rejects]},
        {
            "data_path": str(data),
            "data_config": json.dumps(vars(config)),
            **({"longest_test": longest_test} if longest_test else {}),
        },
    )
    assert artifact_utils.decode_split_names(examples.split_names) == ["train", "eval", "test"]
    assert examples.get_string_custom_property("payload_format") == "FORMAT_TF_EXAMPLE"
    counts = json.loads((output / "rejects" / "counts.json").read_text())
    assert rejects.get_int_custom_property("read") == counts["read"]
    return (
        read_splits(examples.uri),
        (output / "rejects" / "rejects.tsv").read_text().split("\n"),
        counts,
    )


@pytest.fixture(scope="module")
def ingested(tmp_path_factory):
    """What `run` returns for `write_data`, and the folder that it wrote to."""
    folder = tmp_path_factory.mktemp("ingested")
    return run(write_data(folder / "data"), folder), folder


def read_splits(uri):
    splits = {}
    for split in SPLITS:
        files = tf.io.gfile.glob(f"{uri}/Split-{split}/*.gz")
        records = tf.data.TFRecordDataset(files, compression_type="GZIP").as_numpy_iterator()
        splits[split] = sorted(map(parse, records))
    return splits


def parse(record):
    feature = tf.train.Example.FromString(record).features.feature
    more = sorted(set(feature) - {"source", "target", "file", "line"})
    texts = [
        feature[name].bytes_list.value[0].decode() for name in ("file", "source", "target", *more)
    ]
    return texts[0], feature["line"].int64_list.value[0], *texts[1:]


def test_every_record_is_kept_or_rejected_once(ingested):
    (splits, rejects, counts), folder = ingested
    assert rejects == [
        "file\tline\treason\ttext",
        "b.tsv\t1\tduplicate of a.tsv:1\thello number 0\\tbonjour numéro 0",
        "b.tsv\t2\tduplicate of a.tsv:1\thello number 0\\tbonjour numéro 0",
        "b.tsv\t3\tduplicate of a.tsv:4\thello number 3\\tbonjour numéro 3",
        "b.tsv\t4\tempty line\t",
        "b.tsv\t5\tempty target\ttab\\\\slash\\t",
        "b.tsv\t7\tnot valid UTF-8\t\\\\xff\\tx",
        "",
    ]
    assert counts == {
        "read": 47,
        "kept": 41,
        "rejected": 6,
        "by_reason": {"duplicate": 3, "empty line": 1, "empty target": 1, "not valid UTF-8": 1},
        "by_split": {split: len(rows) for split, rows in splits.items()},
        "rejected_by_given_split": {},
        "ignored_files": ["notes.md"],
        "recombined": 0,
    }
    rows = sorted(row for split in splits.values() for row in split)
    assert [row[:2] for row in rows] == [("a.tsv", line) for line in range(1, 41)] + [("b.tsv", 6)]
    assert rows[2] == ("a.tsv", 3, "hello number 2", "bonjour numéro 2")
    for split, rows in splits.items():
        assert all(split_of(source, "verbatim", 0.3, 0.3) == split for _, _, source, _ in rows)
    assert sorted(path.name for path in (folder / "rejects").iterdir()) == [
        "counts.json",
        "rejects.tsv",
    ]


def test_given_test_files_are_held_as_they_are(tmp_path):
    """No record of theirs is a duplicate; what training shares with them leaves training."""
    data = tmp_path / "data"
    data.mkdir()
    train = [f"hello number {number}\tbonjour numéro {number}" for number in range(40)]
    (data / "train.tsv").write_text("\n".join([*train, train[7]]) + "\n")
    (data / "dev.tsv").write_text(
        "\n".join([train[3], train[3], "only here\tici", train[4], "\tx"]) + "\n"
    )
    given = DataConfig(
        train_files=("train.tsv",), test_files=("dev.tsv",), eval_share=0.3, max_rejected_share=0.5
    )
    splits, rejects, counts = run(data, tmp_path, given)
    assert [row[:3] for row in splits["test"]] == [
        ("dev.tsv", 1, "hello number 3"),
        ("dev.tsv", 2, "hello number 3"),
        ("dev.tsv", 3, "only here"),
        ("dev.tsv", 4, "hello number 4"),
    ]
    assert rejects[1:-1] == [
        "dev.tsv\t5\tempty source\t\\tx",
        "train.tsv\t4\talso in a given test file: dev.tsv:1\thello number 3\\tbonjour numéro 3",
        "train.tsv\t5\talso in a given test file: dev.tsv:4\thello number 4\\tbonjour numéro 4",
        "train.tsv\t41\tduplicate of train.tsv:8\thello number 7\\tbonjour numéro 7",
    ]
    assert counts["read"] == 46 and counts["kept"] == 42
    assert counts["rejected_by_given_split"] == {"test": 1, "train": 3}
    assert {row[0] for split in ("train", "eval") for row in splits[split]} == {"train.tsv"}
    assert 4 <= counts["by_split"]["eval"] <= 20
    for split in ("train", "eval"):
        assert all(split_of(row[2], "verbatim", 0.3, 0.0) == split for row in splits[split])


def test_given_test_files_are_not_measured_without_their_long_texts(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    train = [f"hello number {number}\tbonjour numéro {number}" for number in range(40)]
    long = f"{' '.join(['long'] * 60)}\tlong"
    (data / "train.tsv").write_text("\n".join([*train, long]) + "\n")
    (data / "dev.tsv").write_text(f"only here\tici\n{long}\n")
    given = DataConfig(
        train_files=("train.tsv",), test_files=("dev.tsv",), eval_share=0.3, max_tokens=50
    )
    splits, rejects, counts = run(data, tmp_path / "a", given, longest_test=60)
    assert [row[:2] for row in splits["test"]] == [("dev.tsv", 1), ("dev.tsv", 2)]
    assert counts["by_reason"] == {"longer than 50 tokens": 1} and len(rejects) == 3
    with pytest.raises(DataError, match=r"dev.tsv:2 has more than 59 tokens, the last of decod"):
        run(data, tmp_path / "b", given, longest_test=59)


def test_tags_of_the_source_become_features(tmp_path):
    data = tmp_path / "a.tsv"
    rows = [f"word number {number}\tmot\tN N C" for number in range(30)]
    data.write_text("\n".join(["source\ttarget\tpos", *rows, "a b\tx\tN"]) + "\n")
    config = DataConfig(
        tokenization="whitespace", source_features=("pos",), eval_share=0.3, test_share=0.3
    )
    splits, rejects, _ = run(data, tmp_path, config)
    assert {row[4] for rows in splits.values() for row in rows} == {"N N C"}
    assert rejects[1:-1] == [
        "a.tsv\t32\t'pos' does not have one tag per token of the source\ta b\\tx\\tN"
    ]


def test_columns_to_slice_by_become_features(tmp_path):
    data = tmp_path / "a.tsv"
    rows = [
        f"word number {number}\tmot\t{'law' if number % 2 else ' two  words '}"
        for number in range(30)
    ]
    data.write_text("\n".join(["source\ttarget\tdomain", *rows]) + "\n")
    splits, _, counts = run(
        data, tmp_path, DataConfig(slice_features=("domain",), eval_share=0.3, test_share=0.3)
    )
    assert counts["kept"] == 30
    domains = {row[2]: row[4] for rows in splits.values() for row in rows}
    assert domains["word number 1"] == "law" and domains["word number 2"] == "two words"


@pytest.mark.parametrize("held_bytes", [10**9, 200, 0])
def test_the_result_does_not_depend_on_how_beam_works(ingested, tmp_path, monkeypatch, held_bytes):
    """A part that is too large to be held is divided; with 0 bytes until its pairs are equal."""
    result, folder = ingested
    monkeypatch.setattr(duplicates, "_PARTS", 2)
    monkeypatch.setattr(duplicates, "_HELD_BYTES", held_bytes)
    threads = ["--direct_running_mode=multi_threading", "--direct_num_workers=3"]
    assert run(folder / "data", tmp_path, beam_args=threads) == result


def test_duplicates_may_stay(tmp_path):
    _, _, counts = run(
        write_data(tmp_path / "data"),
        tmp_path,
        DataConfig(**{**vars(CONFIG), "drop_duplicates": False}),
    )
    assert counts["kept"] == 44 and "duplicate" not in counts["by_reason"]


def test_both_halves_of_a_plural_entry_that_say_the_same_are_one_pair(tmp_path):
    entry = (
        'msgid "fish {0}"\nmsgid_plural "fish {0}"\nmsgstr[0] "poisson {0}"\nmsgstr[1] '
        '"poisson {0}"\n'
    )
    (tmp_path / "a.po").write_text(
        "\n".join(entry.replace("{0}", str(number)) for number in range(30))
    )
    _, rejects, counts = run(tmp_path / "a.po", tmp_path)
    assert (counts["read"], counts["kept"], counts["rejected"]) == (60, 30, 30)
    assert rejects[1].startswith("a.po\t1\tduplicate of a.po:1\t")


def test_too_many_rejects_stop_the_run_and_stay_readable(tmp_path):
    data = write_data(tmp_path / "data")
    with pytest.raises(
        DataError, match=r"6 of 47 records were rejected \(12\.8%, most often 'duplicate': 3\)"
    ) as caught:
        run(data, tmp_path, DataConfig(**{**vars(CONFIG), "max_rejected_share": 0.1}))
    kept = tmp_path / "rejects-failed" / "rejects.tsv"
    assert str(caught.value).endswith(f"{kept}.") and len(kept.read_text().splitlines()) == 7


def test_plural_forms_that_are_left_out_count_for_no_limit(ingested):
    (_, _, counts), folder = ingested
    by_reason = {LEFT_OUT: 30, "fuzzy": 5, OTHER_LANGUAGES: 6, NOT_TRANSLATABLE: 4}
    counts = {**counts, "read": 100, "kept": 55, "rejected": 45, "by_reason": by_reason}
    pair_writer._check(counts, DataConfig(max_rejected_share=0.1), str(folder / "rejects"))
    with pytest.raises(DataError, match=r"5 of 60 records were rejected \(8\.3%, .*'fuzzy': 5"):
        pair_writer._check(counts, DataConfig(max_rejected_share=0.08), str(folder / "rejects"))


def test_an_empty_split_stops_the_run(ingested):
    (_, _, counts), folder = ingested
    counts = {**counts, "by_split": {**counts["by_split"], "eval": 0}}
    with pytest.raises(DataError, match=r"There is no record in the split eval .*data\.eval_share"):
        pair_writer._check(counts, CONFIG, str(folder / "rejects"))


def test_data_with_no_records_stops_the_run(tmp_path):
    (tmp_path / "a.tsv").write_text("source\ttarget\n")
    with pytest.raises(DataError, match="contain no records"):
        run(tmp_path / "a.tsv", tmp_path)


def test_records_that_do_not_add_up_are_a_fault():
    with pytest.raises(RuntimeError, match="Records were lost: 3 read, but 1 kept and 1 rejected"):
        pair_writer._counts('["read", "", 3]\n["kept", "train", 1]\n["rejected", "fuzzy", 1]\n', ())


def make_component(path, recipe=RECIPE):
    return component.ParallelTextExampleGen(data_path=str(path), data=recipe.data)


def write_nothing(self, input_dict, output_dict, exec_properties):
    """Stands for the executor where only the number of its executions matters."""
    for (artifact,) in output_dict.values():
        os.makedirs(artifact.uri, exist_ok=True)


def test_local_runner_caches_until_the_data_or_its_settings_change(tmp_path, monkeypatch):
    root = tmp_path / "root"
    # Brackets are what a file pattern would trip over.
    data = write_data(tmp_path / "data [v1]")

    def executions(path=data, recipe=RECIPE):
        """Runs the pipeline; returns how many executions have written examples by now."""
        LocalDagRunner().run(
            tfx_pipeline.Pipeline(
                pipeline_name="test",
                pipeline_root=str(root),
                metadata_connection_config=metadata.sqlite_metadata_connection_config(
                    str(tmp_path / "metadata.sqlite")
                ),
                components=[make_component(path, recipe)],
                enable_cache=True,
            )
        )
        outputs = root / "ParallelTextExampleGen"
        examples = sorted(path.name for path in (outputs / "examples").iterdir())
        assert examples == sorted(path.name for path in (outputs / "rejects").iterdir())
        return len(examples)

    assert executions() == 1
    monkeypatch.setattr(executor.Executor, "Do", write_nothing)
    assert executions() == 1
    # What is not about data leaves the examples as they are.
    assert (
        executions(recipe=Recipe(name="other", data=CONFIG, training=TrainingConfig(epochs=3))) == 1
    )

    (data / "a.tsv").write_text(
        "\n".join(f"goodbye {number}\tau revoir {number}" for number in range(50))
    )
    assert executions() == 2
    assert executions() == 2
    stat = os.stat(data / "a.tsv")
    os.utime(data / "a.tsv", (stat.st_atime, stat.st_mtime + 5))
    # What is not read is no input: an editor's files, notes, a folder.
    for name in (".a.tsv.swp", "a.tsv~", "#a.tsv#", "NOTES.txt", "notes.md", ".hidden.tsv"):
        (data / name).write_text("changed")
    (data / "below").mkdir()
    assert executions() == 2
    # Content counts even where size and time say nothing.
    (data / "a.tsv").write_text((data / "a.tsv").read_text().replace("goodbye", "welcome"))
    os.utime(data / "a.tsv", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert executions() == 3
    assert (
        executions(
            recipe=Recipe(name="test", data=DataConfig(**{**vars(CONFIG), "split_salt": "x"}))
        )
        == 4
    )

    # One file of the folder is an input of its own, untouched by its neighbours.
    assert executions(data / "a.tsv") == 5
    (data / "b.tsv").unlink()
    assert executions(data / "a.tsv") == 5


def compiled(tmp_path, data):
    """Compiles a pipeline for Kubeflow; returns its specification as a dict."""
    example_gen = make_component(data)
    statistics_gen = StatisticsGen(examples=example_gen.outputs["examples"])
    path = tmp_path / "pipeline.json"
    kubeflow_v2_dag_runner.KubeflowV2DagRunner(
        kubeflow_v2_dag_runner.KubeflowV2DagRunnerConfig(
            default_image="image", use_pipeline_spec_2_1=True
        ),
        output_filename=str(path),
    ).run(
        tfx_pipeline.Pipeline(
            "test", str(tmp_path / "root"), components=[example_gen, statistics_gen]
        )
    )
    return json.loads(path.read_text())["pipelineSpec"]


def test_kubeflow_compiles_without_looking_at_the_data(tmp_path):
    spec = compiled(tmp_path, "/only/in/the/cluster")
    container = spec["deploymentSpec"]["executors"]["ParallelTextExampleGen_executor"]["container"]
    assert "components.parallel_text_example_gen.executor.Executor" in container["args"]
    assert "preCacheCheck" in container["lifecycle"]
    assert set(spec["components"]["ParallelTextExampleGen"]["outputDefinitions"]["artifacts"]) == {
        "examples",
        "rejects",
    }


def test_kubeflow_containers_run_driver_and_executor(tmp_path):
    """Does what the two containers do, with the compiled specification as their input."""
    spec = compiled(tmp_path, write_data(tmp_path / "data"))
    invocation = kubeflow.invocation(spec, "ParallelTextExampleGen", tmp_path)
    assert "num_files:2" in json.dumps(
        kubeflow.run_driver(spec, "ParallelTextExampleGen", invocation)
    )
    output = kubeflow.run_container(spec, "ParallelTextExampleGen", invocation)
    assert set(output.artifacts) == {"examples", "rejects"}
    assert sum(map(len, read_splits(str(tmp_path / "examples")).values())) == 41
    assert (tmp_path / "rejects" / "counts.json").is_file()


def test_remote_files_are_read_through_tfx(tmp_path):
    write_data(tmp_path / "data")
    files = RemoteFiles()
    assert (
        files.is_directory(str(tmp_path / "data"))
        and sorted(files.names_in(str(tmp_path / "data")))[0] == "a.tsv"
    )
    local, remote = (
        [*raw_lines(str(tmp_path / "data" / "b.tsv"), it)] for it in (LocalFiles(), files)
    )
    assert local == remote
    assert count_lines(str(tmp_path / "data" / "b.tsv"), files) == 7
