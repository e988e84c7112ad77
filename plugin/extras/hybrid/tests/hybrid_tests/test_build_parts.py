from __future__ import annotations

from pathlib import Path

import msgspec

from tunegate.config import TargetConfig
from tunegate.tune.compiler_protocol import BuildModel
from tunegate.tune.protocol import ModelFile
from tunegate_hybrid.build_parts import part_request


def request(tmp_path: Path) -> BuildModel:
    return BuildModel(
        model=ModelFile(file="m.onnx", path="m.onnx", shapes={}),
        target=TargetConfig(name="cpu"),
        records={},
        sources={},
        directory=str(tmp_path / "whole"),
        scratch=str(tmp_path / "scratch"),
        seed=1,
    )


def test_what_a_part_needs_outlives_its_directory(tmp_path: Path) -> None:
    """Kernels and libraries lie in the scratch while the directory is replaced."""
    whole = request(tmp_path)
    part = part_request(whole, tmp_path / "compiled-0")
    assert not Path(part.scratch).is_relative_to(part.directory)
    assert part.scratch != whole.scratch


def test_what_was_measured_is_not_tried_again_in_each_part(tmp_path: Path) -> None:
    sources = {"a": "search", "b": "transfer", "c": "exact", "d": "prior"}
    whole = msgspec.structs.replace(request(tmp_path), sources=sources, settled=("d",))
    assert part_request(whole, tmp_path / "compiled-0").settled == ("a", "c", "d")
