"""A model whose weight lies in another file."""

from __future__ import annotations

from tests.support.small_onnx import matmul_model


def model_with_data(location: str) -> bytes:
    model = matmul_model(seed=9)
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = weight.EXTERNAL
    weight.external_data.add(key="location", value=location)
    content: bytes = model.SerializeToString()
    return content
