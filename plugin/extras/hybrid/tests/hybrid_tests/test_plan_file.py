from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.errors import ArtifactError
from tunegate_hybrid.plan_file import PartsPlan, PartTensor, PlannedPart


def plan(file: str) -> PartsPlan:
    tensor = PartTensor("x", "float32", (1, 2))
    part = PlannedPart(is_compiled=True, file=file, inputs=(tensor,), outputs=(tensor,))
    return PartsPlan(parts=(part,), outputs=("x",))


def test_a_plan_that_is_written_is_read(tmp_path: Path) -> None:
    plan("part-0.so").write(tmp_path)
    assert PartsPlan.read(tmp_path) == plan("part-0.so")


@pytest.mark.parametrize("file", ["../other.so", "/lib/other.so", "deeper/other.so", ".."])
def test_a_part_lies_beside_its_plan(tmp_path: Path, file: str) -> None:
    plan(file).write(tmp_path)
    with pytest.raises(ArtifactError, match="is no file beside it"):
        PartsPlan.read(tmp_path)
