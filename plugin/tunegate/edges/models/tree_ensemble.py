"""The weights of a tree ensemble, which stand in the attributes of one node.

The values of its leaves are added up when an input has reached them, so other values take the same
time. All else is structure: thresholds decide which branches are taken, and how deep.
"""

from __future__ import annotations

import onnx

_DOMAIN = "ai.onnx.ml"
_OPERATORS = {"TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"}
_LEAF_VALUES = {"base_values", "class_weights", "leaf_weights", "target_weights"}
_AS_TENSOR = "_as_tensor"


def is_tree_ensemble(node: onnx.NodeProto) -> bool:
    return node.domain == _DOMAIN and node.op_type in _OPERATORS


def forget_leaf_values(node: onnx.NodeProto) -> None:
    """Leaves how many there are, and of which type."""
    for attribute in node.attribute:
        if attribute.name.removesuffix(_AS_TENSOR) not in _LEAF_VALUES:
            continue
        count = len(attribute.floats)
        del attribute.floats[:]
        attribute.floats.extend([0.0] * count)
        if attribute.HasField("t"):
            kind, dims = attribute.t.data_type, list(attribute.t.dims)
            attribute.t.CopyFrom(onnx.TensorProto(data_type=kind, dims=dims))
