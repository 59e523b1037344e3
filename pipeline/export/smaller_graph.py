"""Makes the graph of a SavedModel smaller, and quick to load. What it computes stays the same.

A traced graph says many things several times: half of its nodes are constants, such as the 0 and 1
of a slice, and a search stands in it once for each signature. Every node costs time and memory in
every process that loads the model. TensorFlow's own optimizer (Grappler) would look for the same
again, once in every process and for every function that is called.
"""

import graphlib
import os
from collections.abc import Iterable, Iterator, Mapping

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, function_pb2, node_def_pb2
from tensorflow.core.protobuf import config_pb2, saved_model_pb2
from tensorflow.python.framework import op_def_registry
from tensorflow.python.saved_model import fingerprinting_utils

from pipeline.common.whole_files import whole_file

_MODEL_FILE = "saved_model.pb"
# The attribute that ties a node to another one by name.
_COLOCATION = "_class"
# The shapes that were found while tracing. Whoever loads a graph finds them again.
_SHAPES = "_output_shapes"
# The attribute of a call that says how its function is optimized. Calls do not ask the session.
_CALL_CONFIG = "config_proto"


def shrink(directory: str) -> None:
    """Rewrites the functions of a SavedModel.

    In each of them equal nodes become one, nodes that nothing reads are dropped, and the shapes of
    outputs are left out. Then equal functions become one. Calls no longer optimize their functions.

    Args:
        directory: the SavedModel's folder.
    """
    path = os.path.join(directory, _MODEL_FILE)
    model = saved_model_pb2.SavedModel()
    with tf.io.gfile.GFile(path, "rb") as file:
        model.ParseFromString(file.read())
    for graph in model.meta_graphs:
        library = graph.graph_def.library
        named = set(graph.object_graph_def.concrete_functions)
        named.update(node.op for node in graph.graph_def.node)
        for function in library.function:
            named.update(node.op for node in function.node_def)
        for nodes in (graph.graph_def.node, *(one.node_def for one in library.function)):
            _call_as_it_is(nodes)
        own = [function for function in library.function if function.signature.name not in named]
        for function in own:
            _forget_names(function)
        same: dict[str, str] = {}
        changed = list(library.function)
        while changed:
            for function in changed:
                _shrink_function(function)
            found = _equal_functions(one for one in own if one.signature.name not in same)
            same.update(found)
            # Nodes that now call the same may be equal, and so their functions.
            changed = [one for one in library.function if _rename_called(one.node_def, found)]
        kept = [one for one in library.function if one.signature.name not in same]
        del library.function[:]
        library.function.extend(kept)
        _rename_called(graph.graph_def.node, same)
    with whole_file(path, "wb") as file:
        file.write(model.SerializeToString(deterministic=True))
    fingerprinting_utils.write_fingerprint(directory)


def _shrink_function(function: function_pb2.FunctionDef) -> None:
    """Merges equal nodes of a function, drops those that nothing reads, and shortens names."""
    if any(_COLOCATION in node.attr for node in function.node_def):
        return
    read = _reached(function)
    nodes = {node.name: node for node in function.node_def if node.name in read}
    taken = {arg.name for arg in function.signature.input_arg}
    new_names: dict[str, str] = {}
    seen: dict[object, str] = {}
    merged: list[node_def_pb2.NodeDef] = []
    for name in _in_order(nodes):
        node = nodes[name]
        node.attr.pop(_SHAPES, None)
        inputs = [_renamed(one, new_names) for one in node.input]
        data = [one for one in inputs if not one.startswith("^")]
        controls = sorted({one for one in inputs if one.startswith("^")})
        del node.input[:]
        node.input.extend([*data, *controls])
        key: object = object()
        if not _is_stateful(node.op):
            key = (node.op, node.device, tuple(node.input), _content(node.attr))
        if key in seen:
            new_names[name] = seen[key]
            continue
        new_names[name] = seen[key] = node.name = _free_name(node.op, len(merged), taken)
        node.ClearField("experimental_debug_info")
        merged.append(node)
    for values in (function.ret, function.control_ret):
        for output in list(values):
            values[output] = _renamed(values[output], new_names)
    del function.node_def[:]
    function.node_def.extend(merged)


def _call_as_it_is(nodes: Iterable[node_def_pb2.NodeDef]) -> None:
    """Lets calls run their functions without optimizing them."""
    for node in nodes:
        if _CALL_CONFIG in node.attr:
            config = config_pb2.ConfigProto.FromString(node.attr[_CALL_CONFIG].s)
            config.graph_options.rewrite_options.disable_meta_optimizer = True
            node.attr[_CALL_CONFIG].s = config.SerializeToString(deterministic=True)


def _in_order(nodes: Mapping[str, node_def_pb2.NodeDef]) -> Iterable[str]:
    """Returns the names of nodes, each behind those that it reads; as they are, if possible."""
    read_by = {name: list(_read_nodes(node.input, nodes)) for name, node in nodes.items()}
    place = {name: number for number, name in enumerate(nodes)}
    if all(place[read] < place[name] for name, every in read_by.items() for read in every):
        return list(nodes)
    return graphlib.TopologicalSorter(read_by).static_order()


def _is_stateful(name: str) -> bool:
    """Whether nodes of an operation do something besides their outputs, or may."""
    definition = op_def_registry.get(name)
    return definition is None or definition.is_stateful


def _content(attributes: Mapping[str, attr_value_pb2.AttrValue]) -> tuple[tuple[str, bytes], ...]:
    return tuple(
        (name, attributes[name].SerializeToString(deterministic=True))
        for name in sorted(attributes)
    )


def _free_name(op: str, number: int, taken: set[str]) -> str:
    name = f"{op}_{number}"
    while name in taken:
        name += "_"
    return name


def _node_of(value: str) -> str:
    """Returns the name of the node, or of the argument, that an input reads."""
    return value.lstrip("^").partition(":")[0]


def _read_nodes(inputs: Iterable[str], nodes: Mapping[str, object]) -> Iterator[str]:
    return (name for name in map(_node_of, inputs) if name in nodes)


def _renamed(value: str, new_names: Mapping[str, str]) -> str:
    """Returns an input of the form `name`, `name:output:number` or `^name` with the new name."""
    if value.startswith("^"):
        return "^" + new_names.get(value[1:], value[1:])
    name, colon, output = value.partition(":")
    return new_names.get(name, name) + colon + output


def _reached(function: function_pb2.FunctionDef) -> set[str]:
    """Returns the names of the nodes that a function needs."""
    nodes = {node.name: node for node in function.node_def}
    waiting = [name for name, node in nodes.items() if _is_stateful(node.op)]
    waiting += _read_nodes([*function.ret.values(), *function.control_ret.values()], nodes)
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += _read_nodes(nodes[name].input, nodes)
    return reached


def _forget_names(function: function_pb2.FunctionDef) -> None:
    """Renames a function's arguments and outputs to their numbers; its callers count them."""
    new_names = {}
    for number, argument in enumerate(function.signature.input_arg):
        new_names[argument.name] = argument.name = f"input_{number}"
    for attributes in function.arg_attr.values():
        attributes.attr.pop("_user_specified_name", None)
    for node in function.node_def:
        for place, value in enumerate(node.input):
            node.input[place] = _renamed(value, new_names)
    returned = [function.ret[one.name] for one in function.signature.output_arg]
    function.ret.clear()
    for number, (output, value) in enumerate(zip(function.signature.output_arg, returned)):
        output.name = f"output_{number}"
        function.ret[output.name] = _renamed(value, new_names)


def _equal_functions(functions: Iterable[function_pb2.FunctionDef]) -> dict[str, str]:
    """Returns the first equal function of each that has one, by name."""
    first: dict[bytes, str] = {}
    found: dict[str, str] = {}
    for function in functions:
        name = function.signature.name
        function.signature.name = ""
        content = function.SerializeToString(deterministic=True)
        function.signature.name = name
        if first.setdefault(content, name) != name:
            found[name] = first[content]
    return found


def _rename_called(nodes: Iterable[node_def_pb2.NodeDef], same: Mapping[str, str]) -> bool:
    """Lets nodes call the functions that stand for others; returns whether one did."""
    renamed = False
    for node in nodes:
        for value in node.attr.values():
            kind = value.WhichOneof("value")
            called = [value.func] if kind == "func" else value.list.func if kind == "list" else ()
            for function in called:
                if function.name in same:
                    function.name = same[function.name]
                    renamed = True
    return renamed
