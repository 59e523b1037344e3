"""The TFX component that brings parallel text into a pipeline."""

import dataclasses
import glob
import json
import typing

from tfx import types
from tfx.components.example_gen import component as example_gen
from tfx.dsl.components.base import executor_spec
from tfx.orchestration import data_types
from tfx.proto import example_gen_pb2
from tfx.types import component_spec, standard_artifacts, standard_component_specs
from tfx.types.experimental import simple_artifacts

from components.artifacts import REJECTS_KEY
from components.file_digests import LEXICON_DIGEST_KEY, recombination_digest
from components.parallel_text_example_gen import driver, executor
from pipeline.readers.files import resolve_data_path, split_base
from pipeline.readers.planning import aligned_partners, readable_patterns
from pipeline.recipes.sections import DataConfig


class ParallelTextExampleGenSpec(types.ComponentSpec):
    """The spec of a file-based ExampleGen, with the data path, the data section and the rejects."""

    PARAMETERS: typing.ClassVar[dict[str, component_spec.ExecutionParameter]] = {
        **standard_component_specs.FileBasedExampleGenSpec.PARAMETERS,
        executor.DATA_PATH_KEY: component_spec.ExecutionParameter(type=str),
        executor.DATA_CONFIG_KEY: component_spec.ExecutionParameter(type=str),
        executor.LONGEST_TEST_KEY: component_spec.ExecutionParameter(type=int, optional=True),
        LEXICON_DIGEST_KEY: component_spec.ExecutionParameter(type=str, optional=True),
    }
    INPUTS: typing.ClassVar[dict[str, component_spec.ChannelParameter]] = {}
    # The rejects are an artifact of their own, with lineage, rather than files beside the Split
    # folders. Both runners allow it: TFX's drivers for file-based ExampleGens touch the examples
    # alone, and the launcher (local) or the back end (Kubeflow) prepares the other outputs. The
    # type is one of TFX's own: Kubeflow finds the class of any other by its type name, which would
    # have to be an import path of one package and one class.
    OUTPUTS: typing.ClassVar[dict[str, component_spec.ChannelParameter]] = {
        **standard_component_specs.FileBasedExampleGenSpec.OUTPUTS,
        REJECTS_KEY: component_spec.ChannelParameter(type=simple_artifacts.File),
    }


class ParallelTextExampleGen(example_gen.FileBasedExampleGen):
    """Reads parallel text and writes tf.Examples in the splits train, eval and test.

    An Example holds `source`, `target`, `file` (bytes) and `line` (int64), one value each. For each
    of `data.source_features` it also holds the tags of the source's tokens, separated by spaces.
    Near-identical sources share a split, unless the recipe names the files of the splits.
    `pipeline.readers` describes which files are read, and how.

    The class subclasses FileBasedExampleGen because TFX's runners know that class. Its driver takes
    a fingerprint of the input files, so the component runs again exactly when they change. On this
    machine, the fingerprint covers the content of the planned files; on Kubeflow, it covers the
    number, bytes and times of the readable files. Only the recipe's data section is part of the
    cache key, because other settings change no example.

    Component `outputs` contains:
     - `examples`: `standard_artifacts.Examples`, gzipped TFRecords in `Split-train`, `Split-eval`,
       `Split-test`.
     - `rejects`: `simple_artifacts.File`, a folder with `rejects.tsv` and `counts.json`.
    """

    SPEC_CLASS = ParallelTextExampleGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)
    DRIVER_CLASS = driver.Driver

    def __init__(
        self,
        data_path: str | data_types.RuntimeParameter,
        data: DataConfig,
        longest_test: int = 0,
    ) -> None:
        """Creates the component.

        It does not read the data, which only the cluster may be able to reach.

        Args:
            data_path: a file, a folder, or two line-aligned files separated by a comma; or a
                `RuntimeParameter` of a folder.
            data: the recipe's data section.
            longest_test: the most tokens that a text in the files of `data.test_files` may have, so
                that the model can be measured on it; 0 for the limits of `data`.
        """
        if isinstance(data_path, data_types.RuntimeParameter):
            base = data_path
            patterns = _named_patterns(data) if data.train_files else readable_patterns(data)
        else:
            data_path = resolve_data_path(data_path)
            base, patterns = _fingerprinted(data_path, data)
        splits = [
            example_gen_pb2.Input.Split(name=f"pattern_{number}", pattern=pattern)
            for number, pattern in enumerate(patterns)
        ]
        file_format = example_gen_pb2.FORMAT_TFRECORDS_GZIP
        spec = ParallelTextExampleGenSpec(
            **{
                standard_component_specs.INPUT_BASE_KEY: base,
                standard_component_specs.INPUT_CONFIG_KEY: example_gen_pb2.Input(splits=splits),
                # The executor divides by the source text, which no output config can express.
                standard_component_specs.OUTPUT_CONFIG_KEY: example_gen_pb2.Output(),
                standard_component_specs.OUTPUT_DATA_FORMAT_KEY: example_gen_pb2.FORMAT_TF_EXAMPLE,
                standard_component_specs.OUTPUT_FILE_FORMAT_KEY: file_format,
                standard_component_specs.EXAMPLES_KEY: types.Channel(
                    type=standard_artifacts.Examples
                ),
                executor.DATA_PATH_KEY: data_path,
                executor.DATA_CONFIG_KEY: json.dumps(dataclasses.asdict(data), sort_keys=True),
                # Left out if it changes nothing, so that cached artifacts stay valid.
                **(
                    {executor.LONGEST_TEST_KEY: longest_test}
                    if longest_test and data.test_files
                    else {}
                ),
                **recombination_digest(data),
                REJECTS_KEY: types.Channel(type=simple_artifacts.File),
            }
        )
        # Not FileBasedExampleGen.__init__, which builds a spec without the rejects.
        super(example_gen.FileBasedExampleGen, self).__init__(spec=spec)


def _fingerprinted(data_path: str, data: DataConfig) -> tuple[str, list[str]]:
    """Returns (input base, glob patterns) that match the files behind a data path.

    Only Kubeflow's driver uses them; the one on this machine uses the plan of the files. The
    patterns fit a file, a folder and a pair of files. A pattern may match nothing, so no file is
    looked up here. All paths are escaped: a bracket in a folder's name would match nothing and hide
    every change.
    """
    if data.train_files:
        base, patterns = data_path, _named_patterns(data)
    else:
        # A path with a comma is a pair, or a file or folder of that name. One of two aligned files
        # means both.
        parts = data_path.split(",") if "," in data_path else aligned_partners(data_path, data)
        base, names = split_base(parts)
        whole = data_path[len(base) :].lstrip("/")
        patterns = [_escape(name) for name in dict.fromkeys([whole, *names])] + [
            f"{_escape(whole)}/{pattern}" for pattern in readable_patterns(data)
        ]
    return glob.escape(base), patterns


def _escape(name: str) -> str:
    """Returns a pattern that matches only a name.

    TFX interprets more than globs in a pattern: `{SPAN}` and `{MM}` stand for numbers.
    """
    return glob.escape(name).replace("{", "[{]")


def _named_patterns(data: DataConfig) -> list[str]:
    """Returns patterns for the files that a recipe names.

    These are each entry whole and its parts, as names and as wildcards.
    """
    patterns: list[str] = []
    for entry in (*data.train_files, *data.eval_files, *data.test_files):
        parts = [part.strip() for part in entry.split(",")]
        names = [entry, *parts] if len(parts) > 1 else aligned_partners(entry, data)
        patterns += [pattern for name in names for pattern in (_escape(name), name)]
    return list(dict.fromkeys(patterns))
