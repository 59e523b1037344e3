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

from components.text_example_gen import driver, executor
from pipeline.readers.files import resolve_data_path
from pipeline.recipes.sections import DataConfig, LanguageModelConfig


class TextExampleGenSpec(types.ComponentSpec):
    """The spec of a file-based ExampleGen, with the data path, a recipe and the counts."""

    PARAMETERS: typing.ClassVar[dict[str, component_spec.ExecutionParameter]] = {
        **standard_component_specs.FileBasedExampleGenSpec.PARAMETERS,
        executor.DATA_PATH_KEY: component_spec.ExecutionParameter(type=str),
        executor.RECIPE_KEY: component_spec.ExecutionParameter(type=str),
    }
    INPUTS: typing.ClassVar[dict[str, component_spec.ChannelParameter]] = {}
    # One of TFX's own types, for the same reason as the rejects of ParallelTextExampleGen.
    OUTPUTS: typing.ClassVar[dict[str, component_spec.ChannelParameter]] = {
        **standard_component_specs.FileBasedExampleGenSpec.OUTPUTS,
        executor.COUNTS_KEY: component_spec.ChannelParameter(type=simple_artifacts.File),
    }


class TextExampleGen(example_gen.FileBasedExampleGen):
    """Reads plain text and writes its passages as tf.Examples.

    The splits are train, eval and, where the recipe names test files, test. An Example holds
    `text`, `file` (bytes), `context`, `order` and `line` (int64): see
    `pipeline.readers.text_streams.Passage`. The class subclasses FileBasedExampleGen for its
    fingerprint of the input files, as ParallelTextExampleGen does.

    Component `outputs` contains:
     - `examples`: `standard_artifacts.Examples`, gzipped TFRecords.
     - `counts`: `simple_artifacts.File`, a folder with `counts.json`: lines and words of each
       split.
    """

    SPEC_CLASS = TextExampleGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)
    DRIVER_CLASS = driver.Driver

    def __init__(
        self,
        data_path: str | data_types.RuntimeParameter,
        data: DataConfig,
        language_model: LanguageModelConfig,
        length_buckets: tuple[int, ...],
    ) -> None:
        """Creates the component.

        It does not read the data, which only the cluster may be able to reach.

        Args:
            data_path: the folder of the files that `data` names; or a `RuntimeParameter` of it.
            data: the recipe's data section.
            language_model: the recipe's language_model section; its window and batch size decide
                the least length of a text.
            length_buckets: the recipe's `decoding.length_buckets`; the last is the length of a
                passage.
        """
        base = data_path
        if not isinstance(data_path, data_types.RuntimeParameter):
            data_path = resolve_data_path(data_path)
            # A bracket in a folder's name would match nothing and hide every change.
            base = glob.escape(data_path)
        entries = (*data.train_files, *data.eval_files, *data.test_files)
        splits = [
            example_gen_pb2.Input.Split(name=f"pattern_{number}", pattern=pattern)
            for number, pattern in enumerate(dict.fromkeys(entries))
        ]
        file_format = example_gen_pb2.FORMAT_TFRECORDS_GZIP
        spec = TextExampleGenSpec(
            **{
                standard_component_specs.INPUT_BASE_KEY: base,
                standard_component_specs.INPUT_CONFIG_KEY: example_gen_pb2.Input(splits=splits),
                standard_component_specs.OUTPUT_CONFIG_KEY: example_gen_pb2.Output(),
                standard_component_specs.OUTPUT_DATA_FORMAT_KEY: example_gen_pb2.FORMAT_TF_EXAMPLE,
                standard_component_specs.OUTPUT_FILE_FORMAT_KEY: file_format,
                standard_component_specs.EXAMPLES_KEY: types.Channel(
                    type=standard_artifacts.Examples
                ),
                executor.DATA_PATH_KEY: data_path,
                executor.RECIPE_KEY: executor.passages_recipe(
                    data, language_model, length_buckets
                ).to_json(),
                executor.COUNTS_KEY: types.Channel(type=simple_artifacts.File),
            }
        )
        # Not FileBasedExampleGen.__init__, which builds a spec without the counts.
        super(example_gen.FileBasedExampleGen, self).__init__(spec=spec)
