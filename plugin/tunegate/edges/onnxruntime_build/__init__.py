"""Artifacts that ONNX Runtime runs. Needs no compiler."""
