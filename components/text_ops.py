"""TensorFlow Text's ops in Beam's workers.

A worker that has just been started knows the ops of TensorFlow alone. If its first step loads a
graph with an op of TensorFlow Text, it fails with "Op type not registered". TensorFlow Transform
2's loader registers them only behind the load.
"""

from typing import Any, Protocol

import apache_beam as beam

# Registers the ops where this module is imported: here, and where a step is unpickled.
import tensorflow_text  # noqa: F401
from apache_beam.pipeline import AppliedPTransform, PipelineVisitor


class _TextOps:
    """An attribute of a step. A worker that unpickles it imports this module first."""


class _GiveTextOps(PipelineVisitor):
    def visit_transform(self, transform_node: AppliedPTransform) -> None:
        transform = transform_node.transform
        if isinstance(transform, beam.ParDo):
            transform.fn.text_ops = _TextOps()


class TextOpsPipeline(beam.Pipeline):
    """A Beam pipeline whose workers register TensorFlow Text's ops before they set up a step."""

    def run(self, test_runner_api: bool | str = "AUTO") -> Any:
        """Runs the pipeline; see the base."""
        self.visit(_GiveTextOps())
        return super().run(test_runner_api)


class _BeamExecutor(Protocol):
    _beam_pipeline_args: list[str]
    _make_beam_pipeline_fn: Any


class TextOpsExecutor:
    """Mixed into one of TFX's Beam executors, before it: makes such pipelines."""

    def _make_beam_pipeline(self: _BeamExecutor) -> beam.Pipeline:
        if self._make_beam_pipeline_fn is not None:
            return self._make_beam_pipeline_fn()
        return TextOpsPipeline(argv=self._beam_pipeline_args)
