from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.cli.handlers.init import starter_globs
from tunegate.review.globs import matches


@pytest.mark.parametrize(
    ("paths", "globs"),
    [
        (["m.onnx"], ("*.onnx",)),
        (["models/b.onnx", "models/a.onnx"], ("models/*.onnx",)),
        (["models/r/1/m.onnx", "models/b/1/m.onnx", "x.onnx"], ("models/**/*.onnx", "*.onnx")),
        (["a/b/c/m.onnx"], ("a/b/c/*.onnx",)),
        (["a/m.onnx", "a/b/m.onnx"], ("a/**/*.onnx",)),
        (["a[1]/m.onnx"], ("a[[]1]/*.onnx",)),
        (["M.ONNX"], ()),
    ],
)
def test_each_top_level_directory_has_one(paths: list[str], globs: tuple[str, ...]) -> None:
    assert starter_globs(paths) == globs


@given(
    st.lists(
        st.lists(st.text("ab*?[]!-^", min_size=1), min_size=1, max_size=3).map(
            lambda parts: "/".join(parts) + ".onnx"
        ),
        min_size=1,
    )
)
def test_each_model_is_matched(paths: list[str]) -> None:
    globs = starter_globs(paths)
    assert all(any(matches(glob, path) for glob in globs) for path in paths)
