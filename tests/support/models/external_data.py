"""A model whose weight lies in another file."""

from onnx import TensorProto

from tests.support.small_onnx import matmul_model


def lay_out(tensor: TensorProto, location: str) -> TensorProto:
    """The tensor without its numbers: they are in the file."""
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    return tensor


def model_with_data(location: str) -> bytes:
    model = matmul_model(seed=9)
    lay_out(model.graph.initializer[0], location)
    content: bytes = model.SerializeToString()
    return content
