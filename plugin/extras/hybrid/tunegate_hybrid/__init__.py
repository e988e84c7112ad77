"""Parts of a model compiled by TVM, the others under ONNX Runtime: the runtime `hybrid`."""
