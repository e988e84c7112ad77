"""ONNX files: reading them, their input sizes and values, the reference, accuracy."""
