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

from components.parallel_text_example_gen import executor
from pipeline.readers.files import resolve_data_path, split_base
from pipeline.readers.planning import aligned_partners
from pipeline.recipes.recipe import Recipe


class ParallelTextExampleGenSpec(types.ComponentSpec):
    """What a file based ExampleGen takes and gives, with the data path, the data section and the
    rejects besides.
    """

    PARAMETERS: typing.ClassVar[dict] = {
        **standard_component_specs.FileBasedExampleGenSpec.PARAMETERS,
        executor.DATA_PATH_KEY: component_spec.ExecutionParameter(type=str),
        executor.DATA_CONFIG_KEY: component_spec.ExecutionParameter(type=str),
    }
    INPUTS: typing.ClassVar[dict] = {}
    # The rejects are an artifact of their own, with lineage, rather than files beside the Split
    # folders: both runners allow it. TFX's drivers for file based ExampleGens touch the examples
    # alone, and the other outputs keep what the launcher (local) or the back end (Kubeflow)
    # prepared for them. The type is one of TFX's own because Kubeflow finds the class of any other
    # by its type name, which would have to be an import path of one package and one class.
    OUTPUTS: typing.ClassVar[dict] = {
        **standard_component_specs.FileBasedExampleGenSpec.OUTPUTS,
        executor.REJECTS_KEY: component_spec.ChannelParameter(type=simple_artifacts.File),
    }


class ParallelTextExampleGen(example_gen.FileBasedExampleGen):
    """Reads parallel text and writes tf.Examples in the splits train, eval and test.

    An Example holds `source`, `target`, `file` (bytes) and `line` (int64), one value each, and one
    of bytes for each of `data.source_features`: the tags of the source's tokens, parted by spaces.
    Near-identical sources share a split, unless the recipe gives files to the splits. What is read,
    and how, is described in `pipeline.readers`.

    It subclasses FileBasedExampleGen because TFX's runners know that class: its driver takes a
    fingerprint of the input files (number, bytes, modification times), so that the component runs
    again when they change, and is cached when they do not. Only the recipe's data section takes
    part in the cache key: other settings change no example.

    Component `outputs` contains:
     - `examples`: `standard_artifacts.Examples`, gzipped TFRecords in `Split-train`, `Split-eval`,
       `Split-test`.
     - `rejects`: `simple_artifacts.File`, a folder with `rejects.tsv` and `counts.json`.
    """

    SPEC_CLASS = ParallelTextExampleGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(self, data_path, recipe_json):
        """Creates the component;
        it does not look at the data, which may be within reach of the cluster only.

        Args:
            data_path: a file, a folder, or two line-aligned files separated by a comma; or a
                `RuntimeParameter`, of a folder.
            recipe_json: what `pipeline.recipes.recipe.Recipe.to_json` gives.

        Raises:
            pipeline.recipes.fields.RecipeError: the recipe has an unknown key or impossible value.
        """
        data_config = Recipe.from_json(recipe_json).data
        if isinstance(data_path, data_types.RuntimeParameter):
            base = data_path
            patterns = _given_patterns(data_config) if data_config.train_files else ["*"]
        else:
            data_path = resolve_data_path(data_path)
            base, patterns = _fingerprinted(data_path, data_config)
        splits = [
            example_gen_pb2.Input.Split(name=f"pattern_{number}", pattern=pattern)
            for number, pattern in enumerate(patterns)
        ]
        spec = ParallelTextExampleGenSpec(
            **{
                standard_component_specs.INPUT_BASE_KEY: base,
                standard_component_specs.INPUT_CONFIG_KEY: example_gen_pb2.Input(splits=splits),
                # The executor divides by the source text, which no output config can say.
                standard_component_specs.OUTPUT_CONFIG_KEY: example_gen_pb2.Output(),
                standard_component_specs.OUTPUT_DATA_FORMAT_KEY: example_gen_pb2.FORMAT_TF_EXAMPLE,
                standard_component_specs.OUTPUT_FILE_FORMAT_KEY: example_gen_pb2.FORMAT_TFRECORDS_GZIP,
                standard_component_specs.EXAMPLES_KEY: types.Channel(
                    type=standard_artifacts.Examples
                ),
                executor.DATA_PATH_KEY: data_path,
                executor.DATA_CONFIG_KEY: json.dumps(
                    dataclasses.asdict(data_config), sort_keys=True
                ),
                executor.REJECTS_KEY: types.Channel(type=simple_artifacts.File),
            }
        )
        # FileBasedExampleGen's own __init__ would build its own spec, without the rejects: start
        # above it.
        super(example_gen.FileBasedExampleGen, self).__init__(spec=spec)


def _fingerprinted(data_path, data_config):
    """Returns (input base, glob patterns) that match the files behind a data path.

    The patterns suit a file, a folder and a pair of files alike; those that match nothing do no
    harm, so nothing needs to be looked up here. All paths are escaped: a bracket in a folder's name
    would match nothing and hide every change.
    """
    if data_config.train_files:
        base, patterns = data_path, _given_patterns(data_config)
    else:
        # A path with a comma is a pair, or a file or folder of that name. One of two aligned files
        # stands for both.
        parts = (
            data_path.split(",") if "," in data_path else aligned_partners(data_path, data_config)
        )
        base, names = split_base(parts)
        whole = data_path[len(base) :].lstrip("/")
        patterns = [glob.escape(name) for name in dict.fromkeys([whole, *names])] + [
            glob.escape(whole) + "/*"
        ]
    return glob.escape(base), patterns


def _given_patterns(data_config):
    """Returns patterns for the files that a recipe names:
    each entry whole, its parts, and their wildcards.
    """
    patterns = []
    for entry in (*data_config.train_files, *data_config.eval_files, *data_config.test_files):
        parts = [part.strip() for part in entry.split(",")]
        names = [entry, *parts] if len(parts) > 1 else aligned_partners(entry, data_config)
        patterns += [pattern for name in names for pattern in (glob.escape(name), name)]
    return list(dict.fromkeys(patterns))
