"""The TFX component that judges a model."""

import tfx.components
from tfx.dsl.components.base import executor_spec

from components.evaluator import executor


class Evaluator(tfx.components.Evaluator):
    """TFX's own Evaluator, for which an empty `baseline_model` is none.

    `components.last_pushed_model` may give an empty one.
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)
