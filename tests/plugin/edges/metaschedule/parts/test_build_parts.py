from __future__ import annotations

from pathlib import Path

from tunegate.config import TargetConfig
from tunegate.edges.metaschedule.parts.build_parts import part_request
from tunegate.engine.protocol import BuildModel, InParts, ModelFile


def test_what_a_part_needs_outlives_its_directory(tmp_path: Path) -> None:
    """Kernels and libraries lie in the scratch while the directory is replaced."""
    whole = BuildModel(
        model=ModelFile(file="m.onnx", path="m.onnx", shapes={}),
        target=TargetConfig(name="cpu"),
        records={},
        sources={},
        directory=str(tmp_path / "whole"),
        scratch=str(tmp_path / "scratch"),
        seed=1,
        in_parts=InParts(runtime="hybrid", threads=1, decided=""),
    )
    part = part_request(whole, tmp_path / "compiled-0")
    assert part.in_parts is None
    assert not Path(part.scratch).is_relative_to(part.directory)
    assert part.scratch != whole.scratch
