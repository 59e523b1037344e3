"""The TFX component that finds the model that was pushed last."""

import typing

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import component_spec, standard_artifacts

from components.last_pushed_model import executor


class LastPushedModelSpec(types.ComponentSpec):
    """A candidate in, the model that it is compared with out."""

    PARAMETERS: typing.ClassVar[dict] = {
        executor.PUSH_DIRECTORY_KEY: component_spec.ExecutionParameter(type=str)
    }
    INPUTS: typing.ClassVar[dict] = {
        executor.CANDIDATE_KEY: component_spec.ChannelParameter(type=standard_artifacts.Model)
    }
    OUTPUTS: typing.ClassVar[dict] = {
        executor.MODEL_KEY: component_spec.ChannelParameter(type=standard_artifacts.Model)
    }


class LastPushedModel(base_component.BaseComponent):
    """Copies the model that was pushed last, the candidate itself apart;
    only a blessed model is ever pushed.

    It does what a Resolver does where metadata are at hand, for back ends without one: Kubeflow's
    own refuses Resolvers. A run that is repeated takes it from the cache, hence compares with the
    model that it compared with before.

    Component `outputs` contains:
     - `model`: `standard_artifacts.Model`, the SavedModel in `Format-Serving`; an empty folder
       where no other model was pushed, which `components.evaluator` takes for none.
    """

    SPEC_CLASS = LastPushedModelSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(self, candidate, push_directory):
        """Creates the component.

        Args:
            candidate: channel of the model that is to be judged.
            push_directory: where the Pusher pushes to, a folder a version.
        """
        super().__init__(
            spec=LastPushedModelSpec(
                **{
                    executor.CANDIDATE_KEY: candidate,
                    executor.PUSH_DIRECTORY_KEY: push_directory,
                    executor.MODEL_KEY: types.Channel(type=standard_artifacts.Model),
                }
            )
        )
