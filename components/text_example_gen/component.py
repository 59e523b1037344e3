"""The TFX component that brings plain text into a pipeline, for language models."""

import glob
import typing

from tfx import types
from tfx.components.example_gen import component as example_gen
from tfx.dsl.components.base import executor_spec
from tfx.orchestration import data_types
from tfx.proto import example_gen_pb2
from tfx.types import component_spec, standard_artifacts, standard_component_specs
from tfx.types.experimental import simple_artifacts

from components.text_example_gen import executor
from pipeline.readers.files import resolve_data_path
from pipeline.recipes.recipe import Recipe


class TextExampleGenSpec(types.ComponentSpec):
    """What a file based ExampleGen takes and gives, with the data path, the recipe's part and the
    counts besides.
    """

    PARAMETERS: typing.ClassVar[dict] = {
        **standard_component_specs.FileBasedExampleGenSpec.PARAMETERS,
        executor.DATA_PATH_KEY: component_spec.ExecutionParameter(type=str),
        executor.RECIPE_KEY: component_spec.ExecutionParameter(type=str),
    }
    INPUTS: typing.ClassVar[dict] = {}
    # One of TFX's own types, as for the rejects of ParallelTextExampleGen, and for the same reason.
    OUTPUTS: typing.ClassVar[dict] = {
        **standard_component_specs.FileBasedExampleGenSpec.OUTPUTS,
        executor.COUNTS_KEY: component_spec.ChannelParameter(type=simple_artifacts.File),
    }


class TextExampleGen(example_gen.FileBasedExampleGen):
    """Reads plain text and writes its passages as tf.Examples in the splits train, eval and, where
    it is given, test.

    An Example holds `text`, `file` (bytes), `context`, `order` and `line` (int64): see
    `pipeline.readers.text_streams.Passage`. It subclasses FileBasedExampleGen for its fingerprint
    of the input files, as ParallelTextExampleGen does.

    Component `outputs` contains:
     - `examples`: `standard_artifacts.Examples`, gzipped TFRecords.
     - `counts`: `simple_artifacts.File`, a folder with `counts.json`: lines and words of each
       split.
    """

    SPEC_CLASS = TextExampleGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(self, data_path, recipe_json):
        """Creates the component;
        it does not look at the data, which may be within reach of the cluster only.

        Args:
            data_path: the folder of the files that the recipe names; or a `RuntimeParameter` of it.
            recipe_json: what `pipeline.recipes.recipe.Recipe.to_json` gives.
        """
        base = data_path
        if not isinstance(data_path, data_types.RuntimeParameter):
            data_path = resolve_data_path(data_path)
            # A bracket in a folder's name would match nothing and hide every change.
            base = glob.escape(data_path)
        recipe = Recipe.from_json(recipe_json)
        entries = (*recipe.data.train_files, *recipe.data.eval_files, *recipe.data.test_files)
        splits = [
            example_gen_pb2.Input.Split(name=f"pattern_{number}", pattern=pattern)
            for number, pattern in enumerate(dict.fromkeys(entries))
        ]
        spec = TextExampleGenSpec(
            **{
                standard_component_specs.INPUT_BASE_KEY: base,
                standard_component_specs.INPUT_CONFIG_KEY: example_gen_pb2.Input(splits=splits),
                standard_component_specs.OUTPUT_CONFIG_KEY: example_gen_pb2.Output(),
                standard_component_specs.OUTPUT_DATA_FORMAT_KEY: example_gen_pb2.FORMAT_TF_EXAMPLE,
                standard_component_specs.OUTPUT_FILE_FORMAT_KEY: example_gen_pb2.FORMAT_TFRECORDS_GZIP,
                standard_component_specs.EXAMPLES_KEY: types.Channel(
                    type=standard_artifacts.Examples
                ),
                executor.DATA_PATH_KEY: data_path,
                executor.RECIPE_KEY: executor.relevant_recipe(recipe),
                executor.COUNTS_KEY: types.Channel(type=simple_artifacts.File),
            }
        )
        # FileBasedExampleGen's own __init__ would build its own spec, without the counts: start
        # above it.
        super(example_gen.FileBasedExampleGen, self).__init__(spec=spec)
