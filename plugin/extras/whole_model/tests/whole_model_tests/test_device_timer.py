"""Kernels are timed in a child: one that dies costs the text that it died of."""

from __future__ import annotations

from contextlib import closing
from itertools import combinations
from pathlib import Path

import pytest
import tvm

from tunegate.errors import NotOfferedNowError
from tunegate_whole_model.persistent import device_timer
from tunegate_whole_model.persistent.device_timer import DeviceTimer
from tunegate_whole_model.persistent.kernel_timer import TimedText
from tunegate_whole_model.persistent.nvrtc import CompiledKernels, KernelFigures
from tunegate_whole_model.stages.contexts import Context
from tunegate_whole_model.stages.parts import Span
from whole_model_tests.models import TARGET, staged, whole

NO_DEVICE = pytest.mark.skipif(bool(tvm.cuda().exist), reason="there is a device")


def some_text() -> TimedText:
    figures = {"only_0": KernelFigures(32, 0, 0)}
    return TimedText("", CompiledKernels(b"", figures), 64, Context(1, 128))


@NO_DEVICE
def test_what_ends_the_child_is_a_reason_and_not_the_end_of_the_build(tmp_path: Path) -> None:
    program = whole("chain", 128).program
    with closing(DeviceTimer(TARGET, tmp_path, {})) as timer:
        for _ in range(2):
            with pytest.raises(
                NotOfferedNowError, match=r"the process that times its kernels failed \(.*[Cc]uda"
            ):
                timer.milliseconds(program, some_text())


@NO_DEVICE
def test_after_two_deaths_no_more_children_die(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = whole("chain", 128).program
    with closing(DeviceTimer(TARGET, tmp_path, {})) as timer:
        reasons = []
        for _ in range(3):
            with pytest.raises(NotOfferedNowError) as raised:
                timer.milliseconds(program, some_text())
            reasons.append(str(raised.value))
            if len(reasons) == 2:  # whoever starts another one gets another reason
                monkeypatch.setattr(device_timer, "_CHILD", "tests.no_such_module")
    assert reasons[2] == reasons[1]


def test_what_a_kernel_reads_is_not_where_it_writes_when_it_runs_by_itself() -> None:
    """The results of a kernel may lie where its inputs were in the model: they are read no more."""
    found = staged(whole("transformer", 128), "plain", 128)
    places = {
        argument
        for nest in found.nests
        for argument in nest.arguments
        if argument.startswith("arena")
    }
    buffers = {buffer for nest in found.nests for buffer in nest.buffers if buffer.place == "arena"}
    assert len(places) < len(buffers)  # the model does share
    for first in range(len(found.nests) - 1):
        only = found.only(first, 2)
        placed = {
            buffer: Span("arena", start, start + buffer.size_bytes)
            for nest in only.nests
            for argument, buffer in zip(nest.arguments, nest.buffers, strict=True)
            if argument.startswith("arena")
            for start in [int(argument.removeprefix("arena + "))]
        }
        for one, other in combinations(placed, 2):
            assert placed[one].overlaps(placed[other]) == one.span.overlaps(other.span)
        assert max((span.end for span in placed.values()), default=0) <= only.arena_bytes
