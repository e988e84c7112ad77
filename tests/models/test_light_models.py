"""The onnx package's light models, with weights that matter."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tunegate.models.graph import graph_digest
from tunegate.models.kernel_digest import without_weights
from tunegate.models.light_models import seeded_light


@pytest.fixture(scope="module")
def squeezenet() -> onnx.ModelProto:
    return seeded_light("squeezenet", 1)


def test_it_is_a_valid_model_without_constant_weights(squeezenet: onnx.ModelProto) -> None:
    onnx.checker.check_model(squeezenet, full_check=True)
    assert "ConstantOfShape" not in {node.op_type for node in squeezenet.graph.node}


def test_another_seed_changes_weights_only(squeezenet: onnx.ModelProto) -> None:
    other = seeded_light("squeezenet", 2)
    assert other != squeezenet
    assert graph_digest(other.SerializeToString()) == graph_digest(squeezenet.SerializeToString())


def test_no_weight_is_constant_or_endless(squeezenet: onnx.ModelProto) -> None:
    weights = [numpy_helper.to_array(tensor) for tensor in squeezenet.graph.initializer]
    floats = [weight for weight in weights if weight.dtype == np.float32 and weight.size > 1]
    assert floats
    assert all(np.isfinite(weight).all() and weight.std() > 0 for weight in floats)


def test_variances_are_not_negative() -> None:
    model = seeded_light("resnet50", 1)
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    variances = [
        weights[node.input[4]] for node in model.graph.node if node.op_type == "BatchNormalization"
    ]
    assert variances
    assert all((variance >= 0).all() for variance in variances)


# Models without their weights have the shapes that they have with them.

WEIGHTS = numpy_helper.from_array(np.ones((6, 100), np.float32), "weights")
TABLE = numpy_helper.from_array(np.arange(1000), "table")
PLACE = numpy_helper.from_array(np.array([6, 100]), "place")


def model() -> onnx.ModelProto:
    """The weights, reshaped to two numbers of a table: 6 and 100."""
    nodes = [
        helper.make_node("Gather", ["table", "place"], ["shape"]),
        helper.make_node("Reshape", ["weights", "shape"], ["reshaped"]),
        helper.make_node("Add", ["x", "reshaped"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y], [WEIGHTS, TABLE, PLACE]))


def test_of_large_weights_type_and_extents_are_left() -> None:
    before = model()
    after = without_weights(before, most=10)
    kept = {tensor.name: tensor for tensor in after.graph.initializer}
    assert kept["weights"] == TensorProto(name="weights", data_type=1, dims=[6, 100])
    assert (kept["place"], kept["table"]) == (PLACE, TABLE)
    assert before == model()


def test_shapes_that_are_picked_out_of_a_large_table_are_known_as_before() -> None:
    inferred = [
        onnx.shape_inference.infer_shapes(each, data_prop=True).graph
        for each in (model(), without_weights(model(), most=10))
    ]
    before, after = ([*graph.value_info, *graph.output] for graph in inferred)
    assert before == after
    extents = [dim.dim_value for dim in after[-1].type.tensor_type.shape.dim]
    assert extents == [6, 100]
