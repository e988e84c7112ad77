from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tunegate.artifacts.candidates import FLOAT32
from tunegate.config import TargetConfig
from tunegate.tune.compiler_protocol import BuildModel, CompileRequest
from tunegate.tune.protocol import ModelFile


@pytest.mark.parametrize(
    ("precision", "launch", "settings"),
    [
        (FLOAT32, "", {}),
        ("bfloat16", "", {"precision": "bfloat16"}),
        (FLOAT32, "whole", {"launch": "whole"}),
        ("bfloat16", "whole", {"precision": "bfloat16", "launch": "whole"}),
    ],
)
def test_settings_are_what_differs_from_the_usual_build(
    tmp_path: Path, precision: str, launch: str, settings: dict[str, str]
) -> None:
    assert build_request(tmp_path, precision, launch=launch).settings == settings


def test_a_request_is_known_by_its_tag(tmp_path: Path) -> None:
    request = build_request(tmp_path, "bfloat16")
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(request), type=CompileRequest) == request


def build_request(directory: Path, precision: str, *, launch: str = "") -> BuildModel:
    return BuildModel(
        model=ModelFile(file="m.onnx", path="m.onnx", shapes={"x": (1, 3)}),
        target=TargetConfig(name="cpu", threads=1),
        records={},
        sources={},
        directory=str(directory / "build"),
        scratch=str(directory / "scratch"),
        seed=1,
        precision=precision,
        launch=launch,
    )
