"""Schedules held against the default ones inside the model, kernel by kernel; and then as a whole.

Alone a kernel finds its inputs in the cache, and no other layout beside it.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from tunegate.artifacts.candidates import FLOAT32
from tunegate.artifacts.schedule_source import UNMEASURED
from tunegate.edges.metaschedule.kernel_profile import is_faster_whole, slower_in_model
from tunegate.edges.metaschedule.linked_build import LIBRARY, is_native, link_kernels
from tunegate.edges.metaschedule.loader import device_exists
from tunegate.edges.metaschedule.low_precision.lower_kernels import TileKernels, tile_kernels
from tunegate.edges.metaschedule.open_model import OpenModel
from tunegate.edges.metaschedule.schedule_choice import (
    ScheduleChoice,
    scheduled,
    source_of,
    without_schedules,
)
from tunegate.edges.metaschedule.targets import ResolvedTarget
from tunegate.edges.output.artifact_file import ArtifactTensor
from tunegate.engine.protocol import BuildModel

_TRIED = "with-tried.so"


def slower_ones(
    request: BuildModel,
    opened: OpenModel,
    target: ResolvedTarget,
    choices: Sequence[ScheduleChoice],
    inputs: tuple[ArtifactTensor, ...],
) -> frozenset[str]:
    """Names of kernels whose schedule is slower inside the model than the default one."""
    tried = {choice.function.name for choice in choices if _is_tried(choice, request, opened)}
    if request.how is not None or not tried or not device_exists(request.target.kind):
        return frozenset()
    without = without_schedules(choices, tried)
    beside = Path(request.scratch) / "without-tried"
    plain = TileKernels({}, target.target)
    link_kernels(opened, scheduled(opened.module, without), plain, beside, request)
    # A library that was loaded from a path once is what that path gives from then on, and the
    # model may be linked there again.
    library = Path(request.scratch) / _TRIED
    if _has_other_files(request):
        link_kernels(opened, scheduled(opened.module, choices), plain, library, request)
        library /= LIBRARY
    else:
        shutil.copyfile(Path(request.directory) / LIBRARY, library)
    slower = slower_in_model(
        library,
        beside / LIBRARY,
        inputs=inputs,
        kernels=tried,
        kind=request.target.kind,
        seed=request.seed,
    )
    for choice in choices:
        if (name := choice.function.name) in tried:
            opened.known.tried(name, choice.schedule, slower=name in slower)
    return slower


def known_slower(
    request: BuildModel,
    opened: OpenModel,
    target: ResolvedTarget,
    choices: Sequence[ScheduleChoice],
) -> frozenset[str]:
    """Names of kernels whose schedule an earlier build found to be slower inside the model, without
    those that tiles replace."""
    if request.how is not None:
        return frozenset()
    slower = {choice.function.name for choice in choices if _is_slower(choice, opened)}
    if slower and request.precision != FLOAT32:
        slower -= tile_kernels(opened.module, choices, target, request.precision).kernels.keys()
    return frozenset(slower)


def _is_slower(choice: ScheduleChoice, opened: OpenModel) -> bool | None:
    return opened.known.is_slower(choice.function.name, choice.schedule)


def _is_tried(choice: ScheduleChoice, request: BuildModel, opened: OpenModel) -> bool:
    """Whether the schedule is held against the default one. On a GPU what was measured is not: a
    kernel finds there in a model what it finds alone."""
    if choice.main is None or choice.function.workload.digest in request.settled:
        return False
    if _is_slower(choice, opened) is not None:
        return False
    is_measured = source_of(choice.function, request) not in UNMEASURED
    return request.target.kind == "llvm" or not is_measured


def is_faster_tried(
    request: BuildModel, other: BuildModel, inputs: Sequence[ArtifactTensor]
) -> bool:
    """Whether the model is faster with what was tried than as it is in the directory of the other
    request. That is asked where both are libraries for a CPU: a GPU computes on while it is
    timed."""
    if _has_other_files(request) or request.target.kind != "llvm":
        return False
    tried, without = Path(request.scratch) / _TRIED, Path(other.directory) / LIBRARY
    return is_faster_whole(tried, without, inputs=inputs, seed=request.seed)


def _has_other_files(request: BuildModel) -> bool:
    return is_native(request) or request.is_whole or request.precision != FLOAT32
