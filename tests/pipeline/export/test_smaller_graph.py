"""A SavedModel with a smaller graph computes the same, and does all that it did besides."""

import collections

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2, saved_model_pb2

from pipeline.export import smaller_graph


class Twice(tf.Module):
    """Computes several things twice, some of which happen twice."""

    def __init__(self):
        super().__init__()
        self.calls = tf.Variable(0)

    def _sum(self, values):
        # Traced for each caller: equal functions with other names.
        return tf.while_loop(
            lambda place, total: place < tf.size(values),
            lambda place, total: (place + 1, total + values[place] * values[place]),
            (0, 0),
        )[1]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="values")], autograph=False)
    def first(self, values):
        self.calls.assign_add(1)
        self.calls.assign_add(1)
        tf.debugging.Assert(tf.reduce_all(values < 100), ["Give small numbers."])
        unread = tf.exp(tf.cast(values, tf.float32))
        del unread
        drawn = [tf.random.uniform([8]), tf.random.uniform([8])]
        return {
            "sum": self._sum(values) + self._sum(values),
            "ends": tf.stack([values[0], values[-1], values[0], values[-1]]),
            "calls": self.calls.read_value(),
            "differ": tf.reduce_any(tf.not_equal(*drawn)),
        }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="values")], autograph=False)
    def second(self, values):
        return {"sum": self._sum(values)}


def functions_of(folder):
    model = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    return {one.signature.name: one for one in model.meta_graphs[0].graph_def.library.function}


def operations(functions, of):
    (function,) = (one for name, one in functions.items() if name.startswith(f"__inference_{of}_"))
    return collections.Counter(node.op for node in function.node_def)


@pytest.fixture
def folder(tmp_path):
    module = Twice()
    signatures = {"serving_default": module.first, "second": module.second}
    tf.saved_model.save(module, str(tmp_path), signatures=signatures)
    return tmp_path


def test_what_is_said_twice_is_said_once(folder):
    before = functions_of(folder)
    smaller_graph.shrink(str(folder))
    after = functions_of(folder)
    old, new = operations(before, "first"), operations(after, "first")
    assert old["StridedSlice"] == 4 and new["StridedSlice"] == 2
    assert old["While"] + old["StatelessWhile"] == 2
    assert new["While"] + new["StatelessWhile"] == 1
    assert old["Exp"] == 1 and new["Exp"] == 0
    bodies = [name for name in before if "body" in name]
    assert len(bodies) == 3 and len([name for name in after if "body" in name]) == 1


def test_what_happens_twice_happens_twice(folder):
    smaller_graph.shrink(str(folder))
    new = operations(functions_of(folder), "first")
    assert new["AssignAddVariableOp"] == 2 and new["RandomUniform"] == 2
    loaded = tf.saved_model.load(str(folder))
    values = tf.constant([1, 2, 3])
    outputs = loaded.signatures["serving_default"](values=values)
    assert outputs["sum"] == 28 and outputs["ends"].numpy().tolist() == [1, 3, 1, 3]
    assert outputs["calls"] == 2 and outputs["differ"]
    assert loaded.signatures["second"](values=values)["sum"] == 14
    assert loaded.first(values)["calls"] == 4
    with pytest.raises(tf.errors.InvalidArgumentError, match="Give small numbers"):
        loaded.first(100 * values)


def test_a_session_runs_the_smaller_graph(folder):
    smaller_graph.shrink(str(folder))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], str(folder))
        signature = loaded.signature_def["serving_default"]
        fetched = {name: info.name for name, info in signature.outputs.items()}
        outputs = session.run(fetched, {signature.inputs["values"].name: [1, 2, 3]})
    assert outputs["sum"] == 28 and outputs["calls"] == 2 and outputs["differ"]


def test_calls_are_not_optimized_again(folder):
    smaller_graph.shrink(str(folder))
    model = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    graph = model.meta_graphs[0].graph_def
    nodes = [*graph.node, *(node for one in graph.library.function for node in one.node_def)]
    configs = [node.attr["config_proto"].s for node in nodes if "config_proto" in node.attr]
    assert configs
    for config in map(config_pb2.ConfigProto.FromString, configs):
        assert config.graph_options.rewrite_options.disable_meta_optimizer


def test_a_second_time_changes_nothing(folder):
    smaller_graph.shrink(str(folder))
    written = (folder / "saved_model.pb").read_bytes()
    smaller_graph.shrink(str(folder))
    assert (folder / "saved_model.pb").read_bytes() == written
