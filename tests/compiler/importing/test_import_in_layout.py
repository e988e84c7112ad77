"""A model is imported in the first layout in which it can be built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.small_onnx import conv_model, one_node_model, save
from tunegate.compiler import opening as module
from tunegate.compiler.build.functions import functions_of
from tunegate.compiler.opening import import_in_layout
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.errors import UnsupportedModelError
from tunegate.models.preparation import prepare
from tunegate.models.prepared import PreparedModel

TARGET = tvm_target(TargetConfig(name="cpu", threads=1)).target


@pytest.fixture
def prepared(tmp_path: Path) -> PreparedModel:
    file = save(conv_model(), tmp_path / "m.onnx")
    return prepare(file, shapes={}, into=tmp_path / "p", path="m.onnx")


def test_the_second_layout_is_taken_where_the_first_cannot_be_built(
    prepared: PreparedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = import_in_layout(prepared, TARGET, "m", ("nchw",))
    monkeypatch.setattr(module, "unbuildable", _only_first_refused())
    found = import_in_layout(prepared, TARGET, "m", ("nhwc", "nchw"))
    digests = [[f.workload.digest for f in functions_of(each)] for each in (only, found)]
    assert digests[0] == digests[1]


def test_what_the_first_layout_lacks_is_said_where_none_can_be_built(tmp_path: Path) -> None:
    file = save(one_node_model("Det"), tmp_path / "m.onnx")
    prepared = prepare(file, shapes={}, into=tmp_path / "p", path="m.onnx")
    with pytest.raises(UnsupportedModelError, match="Det"):
        import_in_layout(prepared, TARGET, "m", ("nhwc", "nchw"))


def _only_first_refused() -> Callable[..., str]:
    answers = iter(["the compiler has no code for it", ""])
    return lambda *_: next(answers)
