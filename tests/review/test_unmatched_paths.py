from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.config import Config, ModelConfig
from tunegate.review.globs import unmatched_paths

NAMES = st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=6, unique=True)


@given(NAMES, NAMES)
def test_each_path_without_a_model_has_a_line_and_no_other_has(
    written: list[str], there: list[str]
) -> None:
    config = Config(models=tuple(ModelConfig(path=f"m/{name}.onnx") for name in written))
    lines = [*unmatched_paths(config, [f"m/{name}.onnx" for name in there], "the revision")]
    named = [line.split()[1] for line in lines]
    assert named == [f"m/{name}.onnx" for name in written if name not in there]


def test_a_path_with_a_slip_is_told_with_the_model_that_was_meant() -> None:
    config = Config(models=(ModelConfig(path="models/iris_forst.onnx"),))
    paths = ["models/captcha.onnx", "models/iris_forest.onnx"]
    (line,) = unmatched_paths(config, paths, "commit 1a2b3c4")
    assert line == (
        "path models/iris_forst.onnx matches no ONNX file of commit 1a2b3c4. "
        "Did you mean models/iris_forest.onnx? "
        "Otherwise commit the model (also when it is stored by LFS or DVC)."
    )


@pytest.mark.parametrize(
    ("glob", "meant"),
    [
        ("modles/*.onnx", "models/*.onnx"),
        ("models/*.onx", "models/*.onnx"),
        ("models/*_v3.onnx", "models/*.onnx"),
        ("Models/net*.onnx", "models/net*.onnx"),
        ("*/net.onnx.data", ""),
    ],
)
def test_a_glob_with_a_slip_is_told_with_the_glob_that_was_meant(glob: str, meant: str) -> None:
    """One model in place of a glob would not gate tomorrow's."""
    config = Config(models=(ModelConfig(path=glob),))
    (line,) = unmatched_paths(config, ["models/net.onnx", "z/q/other.onnx"], "the revision")
    assert f"path {glob} matches no ONNX file of the revision; the nearest: models/net" in line
    assert (f"Did you mean {meant}? Otherwise commit the model" in line) == bool(meant)


def test_where_there_is_no_model_that_is_said() -> None:
    (line,) = unmatched_paths(Config(models=(ModelConfig(path="a/*.onnx"),)), [], "the revision")
    assert "which has none at all. Correct the glob, or commit the model" in line
