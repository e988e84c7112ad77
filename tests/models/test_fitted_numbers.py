"""Which numbers in attributes are weights, by the digest of the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tunegate.models.graph import graph_digest

ML = "ai.onnx.ml"
TREE: dict[str, object] = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_values": [0.5, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
    "target_treeids": [0, 0],
    "target_nodeids": [1, 2],
    "target_ids": [0, 0],
    "target_weights": [1.0, 2.0],
    "base_values": [0.0],
}


def digest_of(
    changed: Mapping[str, object] = {}, *, operator: str = "TreeEnsembleRegressor", domain: str = ML
) -> str:
    return digest_with({**TREE, **changed}, operator, domain)


def digest_with(given: Mapping[str, object], operator: str, domain: str = ML) -> str:
    node = helper.make_node(operator, ["x"], ["y"], domain=domain)
    node.attribute.extend(helper.make_attribute(name, value) for name, value in given.items())
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1])
    model = helper.make_model(helper.make_graph([node], "g", [x], [y]))
    return graph_digest(model.SerializeToString())


def tensor(*values: float) -> TensorProto:
    return numpy_helper.from_array(np.array(values, dtype=np.float64))


@pytest.mark.parametrize(
    ("attribute", "values"), [("target_weights", [3.0, -4.0]), ("base_values", [7.0])]
)
def test_values_of_leaves_are_weights(attribute: str, values: list[float]) -> None:
    assert digest_of({attribute: values}) == digest_of()


@pytest.mark.parametrize(
    ("attribute", "values"),
    [
        ("nodes_values", [0.25, 0.0, 0.0]),
        ("nodes_featureids", [1, 0, 0]),
        ("nodes_modes", ["BRANCH_LT", "LEAF", "LEAF"]),
        ("target_weights", [1.0]),
    ],
)
def test_thresholds_and_everything_else_are_structure(attribute: str, values: list[object]) -> None:
    assert digest_of({attribute: values}) != digest_of()


def test_leaves_and_thresholds_as_tensors_count_alike() -> None:
    first = with_tensors((1, 2), (0.5,))
    assert with_tensors((5, 6), (0.5,)) == first
    assert with_tensors((1, 2), (0.7,)) != first
    assert with_tensors((1, 2, 3), (0.5,)) != first


def with_tensors(leaves: Sequence[float], splits: Sequence[float]) -> str:
    tensors = {"leaf_weights": tensor(*leaves), "nodes_splits": tensor(*splits)}
    return digest_of(tensors, operator="TreeEnsemble")


@pytest.mark.parametrize(
    ("operator", "attribute"),
    [
        ("LinearClassifier", "coefficients"),
        ("LinearRegressor", "intercepts"),
        ("SVMRegressor", "support_vectors"),
        ("Scaler", "scale"),
    ],
)
def test_what_is_fitted_to_data_is_a_weight(operator: str, attribute: str) -> None:
    first = digest_with({attribute: [1.0, 2.0]}, operator)
    assert digest_with({attribute: [3.0, 4.0]}, operator) == first
    assert digest_with({attribute: [1.0]}, operator) != first
    assert digest_with({"post_transform": "LOGISTIC", attribute: [1.0, 2.0]}, operator) != first


def test_an_operator_of_the_same_name_elsewhere_is_none() -> None:
    other = digest_of({"target_weights": [3.0, 4.0]}, domain="my.own")
    assert other != digest_of(domain="my.own")
