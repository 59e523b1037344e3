"""The TFX component that makes parallel text of the examples of any other component."""

import dataclasses
import json
import typing

from tfx import types
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import component_spec, standard_artifacts
from tfx.types.experimental import simple_artifacts

from components.artifacts import EXAMPLES_KEY, REJECTS_KEY
from components.file_digests import LEXICON_DIGEST_KEY, recombination_digest
from components.pairs_from_examples import executor
from pipeline.recipes.sections import DataConfig


class PairsFromExamplesSpec(types.ComponentSpec):
    """Examples in, parallel text and its rejects out."""

    PARAMETERS: typing.ClassVar[dict[str, component_spec.ExecutionParameter]] = {
        executor.DATA_CONFIG_KEY: component_spec.ExecutionParameter(type=str),
        LEXICON_DIGEST_KEY: component_spec.ExecutionParameter(type=str, optional=True),
    }
    INPUTS: typing.ClassVar[dict[str, component_spec.ChannelParameter]] = {
        EXAMPLES_KEY: component_spec.ChannelParameter(type=standard_artifacts.Examples)
    }
    OUTPUTS: typing.ClassVar[dict[str, component_spec.ChannelParameter]] = {
        executor.PAIRS_KEY: component_spec.ChannelParameter(type=standard_artifacts.Examples),
        REJECTS_KEY: component_spec.ChannelParameter(type=simple_artifacts.File),
    }


class PairsFromExamples(base_beam_component.BaseBeamComponent):
    """Makes parallel text from examples that another component wrote, such as CsvExampleGen.

    The features that `data.source_column`, `data.target_column`, `data.source_features` and
    `data.slice_features` name become those of `ParallelTextExampleGen`. Its rules apply: each
    example becomes a pair, or is listed in the rejects with its shard, number and reason. A split
    `eval` or `test` stays as it is, and a training pair that also occurs in it is rejected. A
    missing split becomes a share of the others: `data.eval_share` or `data.test_share`.

    Component `outputs` contains:
     - `pairs`: `standard_artifacts.Examples`, gzipped TFRecords in `Split-train`, `Split-eval`,
       `Split-test`.
     - `rejects`: `simple_artifacts.File`, a folder with `rejects.tsv` and `counts.json`.
    """

    SPEC_CLASS = PairsFromExamplesSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(self, examples: types.BaseChannel, data: DataConfig) -> None:
        """Creates the component.

        Args:
            examples: channel of tf.Examples.
            data: the recipe's data section.
        """
        super().__init__(
            spec=PairsFromExamplesSpec(
                **{
                    EXAMPLES_KEY: examples,
                    executor.DATA_CONFIG_KEY: json.dumps(dataclasses.asdict(data), sort_keys=True),
                    **recombination_digest(data),
                    executor.PAIRS_KEY: types.Channel(type=standard_artifacts.Examples),
                    REJECTS_KEY: types.Channel(type=simple_artifacts.File),
                }
            )
        )
