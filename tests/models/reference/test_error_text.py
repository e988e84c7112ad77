from __future__ import annotations

import pytest

from tunegate.models.reference.session import said

GATHER = "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Non-zero status code while running Gather."
LOADING = """[ONNXRuntimeError] : 1 : FAIL : Load model from /p/fixed.onnx failed:Node () Op (If)
[ShapeInferenceError] Incompatible dimensions"""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (RuntimeError("in a kernel\nno memory\n"), "no memory"),
        (RuntimeError(), "RuntimeError"),
        (KeyError(1), "1"),
        (RuntimeError(GATHER), "Non-zero status code while running Gather."),
        (
            RuntimeError(LOADING),
            "Node () Op (If) [ShapeInferenceError] Incompatible dimensions",
        ),
        (RuntimeError("x" * 1000), "x" * 300),
    ],
)
def test_an_error_is_told_in_one_line(error: Exception, line: str) -> None:
    assert said(error) == line
