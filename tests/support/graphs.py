"""Small ONNX graphs, written down in a few lines, and the inputs that they have."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tunegate.artifacts.inputs import Drawn, InputForm, InputRule
from tunegate.models.inputs.inferred_rules import inferred_rules
from tunegate.models.reference.onnx_runtime import onnxruntime
from tunegate.models.seeded_inputs import seeded_inputs

DOMAINS = {"": 17, "ai.onnx.ml": 3}


class GraphInput(NamedTuple):
    name: str
    shape: tuple[int, ...]
    dtype: str
    rule: InputRule | None = None
    form: InputForm = ""


def node(
    op: str, inputs: str, outputs: str, *, domain: str = "", name: str = "", **attributes: object
) -> onnx.NodeProto:
    """A node with the names of its inputs and outputs in texts; `_` is an input left out."""
    names = ["" if name == "_" else name for name in inputs.split()]
    made = helper.make_node(op, names, outputs.split(), domain=domain, name=name)
    made.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
    return made


def graph_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[GraphInput],
    outputs: str = "y",
    weights: Mapping[str, Any] = {},
) -> onnx.ModelProto:
    """A model whose outputs say nothing of their types."""
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info(i.name, _kind(i.dtype), list(i.shape)) for i in inputs],
        [onnx.ValueInfoProto(name=name) for name in outputs.split()],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in DOMAINS.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _kind(dtype: str) -> int:
    if dtype == "object":
        return TensorProto.STRING
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def values_of_inputs(
    model: onnx.ModelProto, inputs: Sequence[GraphInput]
) -> dict[str, Drawn | None]:
    """Returns the values that are inferred for each input."""
    rules = inferred_rules(model, inputs)
    return {name: rule.values if rule is not None else None for name, rule in rules.items()}


def runs(model: onnx.ModelProto, inputs: Sequence[GraphInput], seed: int = 0) -> bool:
    """Runs the model on what is inferred for it. Raises what ONNX Runtime does."""
    rules = inferred_rules(model, inputs)
    drawn = seeded_inputs([i._replace(rule=rules[i.name]) for i in inputs], seed)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return bool(onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, drawn))
