"""A transformer's encoder as ONNX, with seeded weights: what exporters write for a small BERT."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.support.small_onnx import model_of


class _Graph:
    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def op(self, kind: str, *inputs: str, **attributes: float | list[int]) -> str:
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))  # type: ignore[arg-type]
        return name

    def weight(self, *shape: int) -> str:
        scale = 1.0 / np.sqrt(shape[0])
        return self.constant(self._random.normal(0.0, scale, shape).astype(np.float32))

    def constant(self, values: np.ndarray) -> str:
        name = f"c_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def linear(self, x: str, width: int, out: int) -> str:
        return self.op("Add", self.op("MatMul", x, self.weight(width, out)), self.weight(out))

    def shaped(self, x: str, *shape: int) -> str:
        return self.op("Reshape", x, self.constant(np.array(shape, dtype=np.int64)))

    def normalized(self, x: str, width: int) -> str:
        ones = self.constant(np.ones(width, dtype=np.float32))
        return self.op("LayerNormalization", x, ones, self.weight(width), axis=-1, epsilon=1e-5)


def transformer(
    *,
    sequence: int = 128,
    width: int = 256,
    heads: int = 4,
    layers: int = 2,
    seed: int = 0,
    batch: int = 1,
) -> onnx.ModelProto:
    """Embeddings `x [batch, sequence, width]` in, the last layer's out;
    post-norm, GELU by Erf, no mask."""
    graph = _Graph(seed)
    shape = [batch, sequence, width]
    x = "x"
    for _ in range(layers):
        x = graph.normalized(graph.op("Add", x, _attention(graph, x, shape, heads)), width)
        x = graph.normalized(graph.op("Add", x, _feed_forward(graph, x, width)), width)
    model = model_of(graph.nodes, {"x": shape}, {x: shape}, graph.weights)
    onnx.checker.check_model(model, full_check=True)
    return model


def _attention(graph: _Graph, x: str, shape: list[int], heads: int) -> str:
    batch, sequence, width = shape

    def split(y: str, order: list[int]) -> str:
        y = graph.shaped(y, batch, sequence, heads, width // heads)
        return graph.op("Transpose", y, perm=order)

    query = split(graph.linear(x, width, width), [0, 2, 1, 3])
    key = split(graph.linear(x, width, width), [0, 2, 3, 1])
    value = split(graph.linear(x, width, width), [0, 2, 1, 3])
    scale = graph.constant(np.array((width // heads) ** -0.5, dtype=np.float32))
    scores = graph.op("Softmax", graph.op("Mul", graph.op("MatMul", query, key), scale), axis=-1)
    mixed = graph.op("Transpose", graph.op("MatMul", scores, value), perm=[0, 2, 1, 3])
    return graph.linear(graph.shaped(mixed, *shape), width, width)


def _feed_forward(graph: _Graph, x: str, width: int) -> str:
    inner = graph.linear(x, width, 4 * width)
    root = graph.constant(np.array(2.0**0.5, dtype=np.float32))
    half = graph.constant(np.array(0.5, dtype=np.float32))
    one = graph.constant(np.array(1.0, dtype=np.float32))
    erf = graph.op("Add", graph.op("Erf", graph.op("Div", inner, root)), one)
    gelu = graph.op("Mul", graph.op("Mul", inner, erf), half)
    return graph.linear(gelu, 4 * width, width)
