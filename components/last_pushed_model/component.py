"""The TFX component that finds the model that was pushed last."""

import typing

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import component_spec, standard_artifacts

from components.artifacts import MODEL_KEY
from components.last_pushed_model import executor


class LastPushedModelSpec(types.ComponentSpec):
    """A candidate in, the model that it is compared with out."""

    PARAMETERS: typing.ClassVar[dict[str, component_spec.ExecutionParameter]] = {
        executor.PUSH_DIRECTORY_KEY: component_spec.ExecutionParameter(type=str)
    }
    INPUTS: typing.ClassVar[dict[str, component_spec.ChannelParameter]] = {
        executor.CANDIDATE_KEY: component_spec.ChannelParameter(type=standard_artifacts.Model)
    }
    OUTPUTS: typing.ClassVar[dict[str, component_spec.ChannelParameter]] = {
        MODEL_KEY: component_spec.ChannelParameter(type=standard_artifacts.Model)
    }


class LastPushedModel(base_component.BaseComponent):
    """Copies the model that was pushed last, other than the candidate itself.

    Only a blessed model is ever pushed. So this component replaces `components.last_blessed_model`
    on back ends that refuse Resolvers, such as Kubeflow's. A repeated run takes its output from the
    cache, so it compares with the same model as before.

    Component `outputs` contains:
     - `model`: `standard_artifacts.Model`, the SavedModel in `Format-Serving`; an empty folder if
       no other model was pushed, which `components.evaluator` ignores.
    """

    SPEC_CLASS = LastPushedModelSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(self, candidate: types.BaseChannel, push_directory: str) -> None:
        """Creates the component.

        Args:
            candidate: channel of the model that is to be judged.
            push_directory: the folder of the Pusher, with one folder per version.
        """
        super().__init__(
            spec=LastPushedModelSpec(
                **{
                    executor.CANDIDATE_KEY: candidate,
                    executor.PUSH_DIRECTORY_KEY: push_directory,
                    MODEL_KEY: types.Channel(type=standard_artifacts.Model),
                }
            )
        )
