"""A step under ONNX Runtime writes into memory that stays, where shapes are known."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import tvm

from tests.support.small_onnx import one_node_model, save
from tunegate.edges.metaschedule.parts.plan_file import PartTensor, PlannedPart
from tunegate.edges.metaschedule.parts.steps import onnx_step, use_threads
from tunegate.edges.metaschedule.parts.tensors import Tensors
from tunegate.edges.reference.part_session import opened_part


def test_threads_may_run_wherever_the_process_may() -> None:
    allowed, before = os.sched_getaffinity(0), tvm.get_global_func("runtime.NumThreads")()
    os.sched_setaffinity(0, {max(allowed)})
    try:
        use_threads(1)
        assert os.sched_getaffinity(0) == {max(allowed)}
    finally:
        use_threads(before)
        os.sched_setaffinity(0, allowed)


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


def test_kernels_get_the_threads_that_they_are_given_and_who_runs_them_keeps_its_cores() -> None:
    threads = tvm.get_global_func("runtime.NumThreads")
    cores, before = os.sched_getaffinity(0), threads()
    use_threads(1)
    assert threads() == 1
    use_threads(before)
    assert os.sched_getaffinity(0) == cores
