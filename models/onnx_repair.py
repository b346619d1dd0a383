"""Corrections to published ONNX files that ONNX Runtime reads more strictly than others do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import GraphProto


def repaired(path: Path) -> bytes:
    """The checked model at ``path`` as ONNX Runtime accepts it; the arithmetic stays the same.

    Inputs that no node reads and that are not stored either are dropped (left over from
    quantising), and so are block sizes on values that have one scale for all.
    """
    import onnx

    model = onnx.load_model(str(path))
    _drop_unread_inputs(model.graph)
    _drop_idle_block_sizes(model.graph)
    return bytes(model.SerializeToString())


def _drop_unread_inputs(graph: GraphProto) -> None:
    read = {name for node in graph.node for name in node.input}
    stored = {value.name for value in graph.initializer}
    for value in list(graph.input):
        if value.name not in read or value.name in stored:
            graph.input.remove(value)


def _drop_idle_block_sizes(graph: GraphProto) -> None:
    single = {value.name for value in graph.initializer if list(value.dims) in ([], [1])}
    for node in graph.node:
        if node.op_type == "DequantizeLinear" and node.input[1] in single:
            for attribute in [item for item in node.attribute if item.name == "block_size"]:
                node.attribute.remove(attribute)
