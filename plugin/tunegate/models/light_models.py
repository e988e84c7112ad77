"""The `light_*` models of the onnx package, with weights.

The package ships them with a ConstantOfShape node for every weight, which makes all outputs equal
and leaves nothing to change; here the weights become seeded random initializers.
"""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

_DIRECTORY = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def seeded_light(name: str, seed: int) -> onnx.ModelProto:
    """Returns the model `light_<name>.onnx`, such as `squeezenet` or `resnet50`, with nodes named
    after their weights."""
    model = onnx.load(_DIRECTORY / f"light_{name}.onnx")
    graph = model.graph
    shapes = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    random = np.random.default_rng(seed)
    weights, nodes = [], []
    for node in graph.node:
        if node.op_type == "ConstantOfShape":
            shape = tuple(int(n) for n in shapes[node.input[0]])
            weights.append(numpy_helper.from_array(_values(random, shape), node.output[0]))
        else:
            nodes.append(node)
    _replace(graph, nodes, weights)
    model.ir_version = max(model.ir_version, 8)
    return model


def _values(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Returns He-scaled weights, so that activations neither vanish nor explode."""
    fan_in = max(1, math.prod(shape[1:]))
    values = random.standard_normal(shape) * math.sqrt(2 / fan_in)
    # Scales and variances must not be negative; small biases keep every layer alive.
    return np.abs(values).astype(np.float32) if len(shape) == 1 else values.astype(np.float32)


def _replace(
    graph: onnx.GraphProto, nodes: list[onnx.NodeProto], weights: list[onnx.TensorProto]
) -> None:
    names_read = {name for node in nodes for name in node.input}
    initializers = [tensor for tensor in graph.initializer if tensor.name in names_read] + weights
    initialized = {tensor.name for tensor in initializers}
    inputs = [i for i in graph.input if i.name in names_read and i.name not in initialized]
    for node in nodes:
        weights_name = next((name for name in node.input if name in initialized), None)
        node.name = node.output[0] if weights_name is None else _layer(weights_name)
    _make_names_unique(nodes)
    for field, items in (
        (graph.node, nodes),
        (graph.initializer, initializers),
        (graph.input, inputs),
    ):
        del field[:]
        field.extend(items)


def _make_names_unique(nodes: list[onnx.NodeProto]) -> None:
    """Numbers the nodes that share a weight, from the second on: ONNX Runtime rejects a repeated
    name."""
    counts: Counter[str] = Counter()
    for node in nodes:
        counts[node.name] += 1
        if counts[node.name] > 1:
            node.name = f"{node.name}#{counts[node.name]}"


def _layer(weight: str) -> str:
    """Returns the layer of a weight: `fire2/squeeze1x1_w_0` -> `fire2/squeeze1x1`."""
    return weight.removesuffix("_0").rpartition("_")[0] or weight
