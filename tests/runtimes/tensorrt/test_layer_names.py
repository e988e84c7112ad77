"""Layers of an engine by the user's nodes, from an engine's own JSON."""

from __future__ import annotations

import json

from tunegate.runtimes.tensorrt.engine import names_of_engine_layers

CONV = "/conv1/Conv + /relu/Relu"
CHANGE = f"Reformatting CopyNode for Input Tensor 0 to {CONV}"
FUSED = "__myl_MulAddCast_myl0_3"
TOLD = json.dumps(
    {
        "Layers": [
            {"Name": CHANGE, "LayerType": "Reformat", "Metadata": ""},
            {
                "Name": CONV,
                "LayerType": "CaskConvolution",
                "Metadata": "[ONNX Layer: /conv1/Conv]\x1e[ONNX Layer: /relu/Relu]",
            },
            {"Name": FUSED, "LayerType": "kgen", "Metadata": "[ONNX Layer: /attn/MatMul]"},
            {"Name": "Reformatting CopyNode for Output Tensor 0 to head + act", "Metadata": ""},
            {"Name": "unknown + other", "LayerType": "Reformat"},
        ],
        "I/O Tensors": [],
    }
)


def test_a_layer_is_called_like_the_first_node_that_it_was_made_of() -> None:
    found = names_of_engine_layers(TOLD)
    assert found[CONV] == "/conv1/Conv"
    assert found[FUSED] == "/attn/MatMul"


def test_a_change_of_layout_counts_for_the_layer_that_it_is_for() -> None:
    found = names_of_engine_layers(TOLD)
    assert found[CHANGE] == "/conv1/Conv"
    assert found["Reformatting CopyNode for Output Tensor 0 to head + act"] == "head"


def test_what_nothing_is_known_of_keeps_its_name() -> None:
    assert names_of_engine_layers(TOLD)["unknown + other"] == "unknown"
    assert names_of_engine_layers('{"Layers": ["plain name"]}') == {}
