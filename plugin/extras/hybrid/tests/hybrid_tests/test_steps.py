"""A step under ONNX Runtime writes into memory that stays, where shapes are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.support.small_onnx import one_node_model, save

from tunegate.models.reference.part_session import opened_part
from tunegate_hybrid.plan_file import PartTensor, PlannedPart
from tunegate_hybrid.steps import onnx_step
from tunegate_hybrid.tensors import Tensors


def test_what_is_made_lies_where_it_lay_before(tmp_path: Path) -> None:
    file = save(one_node_model("Relu"), tmp_path / "m.onnx")
    ends = [PartTensor(name, "float32", (4, 4)) for name in ("x", "y")]
    part = PlannedPart(is_compiled=False, file="m.onnx", inputs=(ends[0],), outputs=(ends[1],))
    tensors = Tensors()
    tensors.put("x", np.full((4, 4), -1, np.float32))
    step = onnx_step(part, opened_part(file, 1), tensors)
    made = tensors.arrays["y"]
    made[...] = 5
    step()
    assert not made.any()
    assert tensors.arrays["y"] is made
