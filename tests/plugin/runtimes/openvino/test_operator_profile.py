from __future__ import annotations

from tunegate.runtimes.openvino.operator_profile import names_of_layers


def test_a_layer_is_called_like_the_first_node_of_the_model_in_it() -> None:
    made_of = {"Multiply_97": "Constant_3,conv1,relu1", "Reorder_1": "", "pool": "pool"}
    named = names_of_layers(made_of, {"conv1", "relu1", "pool"})
    assert named == {"Multiply_97": "conv1", "Reorder_1": "Reorder_1", "pool": "pool"}
