"""The weights of trees, linear models, scalers and support vectors, which stand in the attributes
of one node.

They are added and multiplied, so other values take the same time. All else is structure: the
thresholds of a tree decide which branches are taken, and how deep.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx

_DOMAIN = "ai.onnx.ml"
_OF_TREES = frozenset({"base_values", "class_weights", "leaf_weights", "target_weights"})
_OF_LINES = frozenset({"coefficients", "intercepts"})
_OF_VECTORS = frozenset({"coefficients", "prob_a", "prob_b", "rho", "support_vectors"})
_FITTED: Mapping[str, frozenset[str]] = {
    "LinearClassifier": _OF_LINES,
    "LinearRegressor": _OF_LINES,
    "SVMClassifier": _OF_VECTORS,
    "SVMRegressor": _OF_VECTORS,
    "Scaler": frozenset({"offset", "scale"}),
    "TreeEnsemble": _OF_TREES,
    "TreeEnsembleClassifier": _OF_TREES,
    "TreeEnsembleRegressor": _OF_TREES,
}
_AS_TENSOR = "_as_tensor"


def has_fitted_numbers(node: onnx.NodeProto) -> bool:
    return node.domain == _DOMAIN and node.op_type in _FITTED


def forget_fitted_numbers(node: onnx.NodeProto) -> None:
    """Leaves how many there are, and of which type."""
    for attribute in node.attribute:
        if attribute.name.removesuffix(_AS_TENSOR) not in _FITTED[node.op_type]:
            continue
        count = len(attribute.floats)
        del attribute.floats[:]
        attribute.floats.extend([0.0] * count)
        if attribute.HasField("t"):
            kind, dims = attribute.t.data_type, list(attribute.t.dims)
            attribute.t.CopyFrom(onnx.TensorProto(data_type=kind, dims=dims))
