"""Functions with one graph for many callers."""

import pytest

tf = pytest.importorskip("tensorflow")

from pipeline.common.traced_once import TracedOnce


def called(graph):
    """Returns the names of the functions that a concrete function's graph calls."""
    return [
        node.attr["f"].func.name for node in graph.graph.as_graph_def().node if "f" in node.attr
    ]


def test_two_graphs_call_one():
    table = tf.Variable([1, 2, 3])
    traces = []

    def look_up(ids, scale):
        traces.append(1)
        return {"found": ids.with_flat_values(tf.gather(table, ids.flat_values) * scale["by"])}

    once = TracedOnce(look_up)
    spec = tf.RaggedTensorSpec([None, None], tf.int64)
    graphs = [
        tf.function(lambda ids: once(ids, {"by": 10}), input_signature=[spec]),
        tf.function(lambda ids: once(ids, {"by": tf.size(ids)}), input_signature=[spec]),
    ]
    ids = tf.ragged.constant([[2, 0], [], [1]], dtype=tf.int64)
    ids = tf.RaggedTensor.from_row_splits(ids.flat_values, ids.row_splits)
    assert [graph(ids)["found"].to_list() for graph in graphs] == [
        [[30, 10], [], [20]],
        [[9, 3], [], [6]],
    ]
    names = [called(graph.get_concrete_function()) for graph in graphs]
    assert names[0] == names[1] and len(names[0]) == 1
    assert len(traces) == 1


def test_other_types_have_graphs_of_their_own():
    once = TracedOnce(lambda values: values + values)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def texts(values):
        return once(values)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def numbers(values):
        return once(values)

    assert texts(tf.constant(["a"])).numpy().tolist() == [b"aa"]
    assert numbers(tf.constant([3])).numpy().tolist() == [6]
