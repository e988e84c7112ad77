"""Models of one operator on given numbers, and whether rewriting changes what they give."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tunegate.compiler.importing.rewriting import importable
from tunegate.models.reference.session import NO_OPTIMIZATION, ReferenceSession

OPSET = 21
Arrays = Mapping[str, Any]
"""Numbers by the name of their value."""


def operator_model(
    node: onnx.NodeProto, feed: Arrays, constants: Arrays | None = None, *, opset: int = OPSET
) -> onnx.ModelProto:
    """A model of the node whose outputs are declared with the shapes that they have for `feed`."""
    every = {**feed, **(constants or {})}
    open_outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    found = outputs_of(_model(node, feed, constants or {}, open_outputs, opset), feed)
    assert all(name in every for name in node.input if name)
    outputs = [_declared(each.name, value) for each, value in zip(open_outputs, found, strict=True)]
    return _model(node, feed, constants or {}, outputs, opset)


def of_one(
    operator: str,
    feed: Arrays,
    constants: Arrays | None = None,
    *,
    outputs: str = "y",
    opset: int = OPSET,
    **attributes: object,
) -> onnx.ModelProto:
    """A model of one operator that reads what it is fed, and then the constants."""
    names = [*feed, *(constants or {})]
    node = helper.make_node(operator, names, outputs.split(), **attributes)  # type: ignore[arg-type]
    return operator_model(node, feed, constants, opset=opset)


def replaced(
    operator: str,
    feed: Arrays,
    constants: Arrays | None = None,
    *,
    outputs: str = "y",
    opset: int = OPSET,
    **attributes: object,
) -> list[str]:
    """The operators in the place of one that reads these, which give the same numbers."""
    model = of_one(operator, feed, constants, outputs=outputs, opset=opset, **attributes)
    return rewritten(model, feed)


def outputs_of(model: onnx.ModelProto, feed: Arrays) -> Sequence[Any]:
    """Returns ONNX Runtime's outputs without optimizations: some take attributes for granted."""
    return ReferenceSession(model.SerializeToString(), level=NO_OPTIMIZATION).run(feed)


def rewritten(model: onnx.ModelProto, feed: Arrays) -> list[str]:
    """The operators of the rewritten model, which gives the same numbers."""
    after = importable(model)
    for ours, theirs in zip(outputs_of(after, feed), outputs_of(model, feed), strict=True):
        assert ours.dtype == theirs.dtype
        allowed = 1e-9 if theirs.dtype == np.float64 else 1e-5
        np.testing.assert_allclose(ours, theirs, rtol=allowed, atol=allowed)
    return [node.op_type for node in after.graph.node]


def _model(
    node: onnx.NodeProto,
    feed: Arrays,
    constants: Arrays,
    outputs: Sequence[onnx.ValueInfoProto],
    opset: int,
) -> onnx.ModelProto:
    inputs = [_declared(name, value) for name, value in feed.items()]
    weights = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph([node], "g", inputs, outputs, weights)
    versions = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=versions, ir_version=10)


def _declared(name: str, value: np.ndarray) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
    )
