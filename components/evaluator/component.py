"""The TFX component that measures a model and decides whether to bless it."""

import tfx.components
from tfx.dsl.components.base import executor_spec

from components.evaluator import executor


class Evaluator(tfx.components.Evaluator):
    """TFX's own Evaluator, which ignores an empty `baseline_model`.

    `components.last_pushed_model` may give an empty one.
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)
