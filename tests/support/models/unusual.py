"""Small models of the kinds that ONNX Runtime runs and compilers seldom do."""

import onnx
from onnx import helper, parser

_HEAD = '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>\n'

BRANCHES = """
branches (float[batch, time] x, int64 rate) => (float[batch, 2] y)
<float[4, 2] short = {1,2,3,4,5,6,7,8}, float[8, 2] long = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}>
{
  limit = Constant<value = int64 {100}>()
  is_high = Greater(rate, limit)
  y = If(is_high)<
    then_branch = high () => (float[batch, 2] a) { a = MatMul(x, short) },
    else_branch = low () => (float[batch, 2] b) { b = MatMul(x, long) }
  >
}
"""
"""Each branch takes inputs of one length: with static shapes the other branch is an error. At a
rate of 0 or 1 the length is 8."""

LSTM_IN_BRANCH = """
g (float[time, batch, 2] x, bool is_on) => (float[time, one, batch, 1] y)
<float[1, 4, 2] w = {1,2,3,4,5,6,7,8}, float[1, 4, 1] r = {1,1,1,1}>
{
  y = If(is_on)<
    then_branch = on () => (float[t, o, n, 1] a) {
      a, state, cell = LSTM<hidden_size = 1>(x, w, r)
    },
    else_branch = off () => (float[t, o, n, 1] b) {
      zero = Constant<value = float {0.0}>()
      none = Mul(x, zero)
      b, state_b, cell_b = LSTM<hidden_size = 1>(none, w, r)
    }
  >
}
"""

SEQUENCE = """
g (float[rows, 3] x) => (seq(float[rows, 3]) y)
{
  y = SplitToSequence<axis = 0>(x)
}
"""

FOUND = """
g (float[rows, columns] x) => (int64[axes, found] y, bool[rows, columns] above)
{
  zero = Constant<value = float {0.0}>()
  above = Greater(x, zero)
  y = NonZero(above)
}
"""
"""Its number of results depends on the data."""

QUANTIZED = """
g (float[batch, 4] x) => (float[batch, 2] y)
<float scale = {0.1}, int8 zero = {0}, int8[4, 2] w = {1,-2,3,-4,5,-6,7,-8}>
{
  q = QuantizeLinear(x, scale, zero)
  d = DequantizeLinear(q, scale, zero)
  f = DequantizeLinear(w, scale, zero)
  p = MatMul(d, f)
  pq = QuantizeLinear(p, scale, zero)
  y = DequantizeLinear(pq, scale, zero)
}
"""

LOOP = """
g (float[4] x) => (float[4] y)
{
  trips = Constant<value = int64 {5}>()
  yes = Constant<value = bool {1}>()
  y = Loop(trips, yes, x)<
    body = step (int64 i, bool before, float[4] a) => (bool after, float[4] b) {
      after = Identity(before)
      b = Sin(a)
    }
  >
}
"""


def model(text: str) -> onnx.ModelProto:
    """A model of the text of a graph."""
    return parser.parse_model(_HEAD + text)


def map_model(scale: float = 1.0) -> onnx.ModelProto:
    """A classifier as scikit-learn's are exported: a label and a map of probabilities for each
    row."""
    floats = onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], name="product"),
        helper.make_node(
            "ZipMap", ["p"], ["maps"], domain="ai.onnx.ml", classlabels_strings=["cat", "dog"]
        ),
        helper.make_node("ArgMax", ["p"], ["label"], axis=1, keepdims=0),
    ]
    maps = helper.make_map_type_proto(
        onnx.TensorProto.STRING, helper.make_tensor_type_proto(floats, [])
    )
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("x", floats, ["rows", 3])],
        [
            helper.make_tensor_value_info("label", onnx.TensorProto.INT64, ["rows"]),
            helper.make_value_info("maps", helper.make_sequence_type_proto(maps)),
        ],
        [helper.make_tensor("w", floats, [3, 2], [scale * n for n in (1, 2, 3, 4, 5, 6)])],
    )
    return _of(graph)


def text_model() -> onnx.ModelProto:
    """Categories that an encoder knows, as numbers; and the texts themselves."""
    nodes = [
        helper.make_node(
            "LabelEncoder",
            ["x"],
            ["y"],
            domain="ai.onnx.ml",
            keys_strings=["a", "b"],
            values_floats=[1.0, 2.0],
        ),
        helper.make_node("Identity", ["x"], ["same"], name="same"),
    ]
    value, text = helper.make_tensor_value_info, onnx.TensorProto.STRING
    graph = helper.make_graph(
        nodes,
        "texts",
        [value("x", text, ["rows"])],
        [value("y", onnx.TensorProto.FLOAT, ["rows"]), value("same", text, ["rows"])],
    )
    return _of(graph)


def _of(graph: onnx.GraphProto) -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)
