"""Times schedules against the default ones inside the model: kernel by kernel, then the whole
model.

A kernel that is timed alone finds its inputs in the cache, and no other layout beside it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from tunegate.artifacts.candidates import FLOAT32
from tunegate.artifacts.tasks import UNMEASURED
from tunegate.compiler.forms import form_for
from tunegate.compiler.loader import device_exists, is_faster_whole, slower_in_model
from tunegate.compiler.low_precision.lower_kernels import tile_kernels
from tunegate.compiler.opening import OpenModel
from tunegate.compiler.schedules.schedule_choice import ScheduleChoice, source_of, without_schedules
from tunegate.compiler.targets import ResolvedTarget
from tunegate.system.output.artifact_file import ArtifactTensor
from tunegate.tune.compiler_protocol import BuildModel, RunningKernel

_TRIED = "with-tried.so"


class Linking(NamedTuple):
    """`library` is the build's; `link` links kernels with given schedules into a directory and
    returns their library."""

    library: Path
    link: Callable[[Sequence[ScheduleChoice], Path], Path]


def slower_ones(
    request: BuildModel,
    opened: OpenModel,
    choices: Sequence[ScheduleChoice],
    inputs: tuple[ArtifactTensor, ...],
    linking: Linking,
) -> frozenset[str]:
    """Returns the kernels whose schedule is slower inside the model than the default one."""
    tried = {choice.function.name for choice in choices if _is_tried(choice, request, opened)}
    if request.how is not None or not tried or not device_exists(request.target.kind):
        return frozenset()
    without = without_schedules(choices, tried)
    beside = linking.link(without, Path(request.scratch) / "without-tried")
    # A path that was loaded once keeps giving the same library, and the model may be linked there
    # again.
    library = Path(request.scratch) / _TRIED
    if _has_other_files(request):
        library = linking.link(choices, library)
    else:
        shutil.copyfile(linking.library, library)
    workloads = {c.function.name: c.function.workload.digest for c in choices}
    with closing(RunningKernel(Path(request.scratch))) as running:
        slower = slower_in_model(
            library,
            beside,
            inputs=inputs,
            kernels=tried,
            kind=request.target.kind,
            seed=request.seed,
            running=lambda name: running.note(workloads[name] if name in tried else ""),
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
    """Returns the kernels whose schedule an earlier build found slower inside the model, without
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
    """Returns whether to time the schedule against the default one. On a GPU a measured schedule is
    not tried: a kernel runs in a model there as it runs alone."""
    if choice.main is None or choice.function.workload.digest in request.settled:
        return False
    if _is_slower(choice, opened) is not None:
        return False
    is_measured = source_of(choice.function, request) not in UNMEASURED
    return request.target.kind == "llvm" or not is_measured


def is_faster_tried(request: BuildModel, without: Path, inputs: Sequence[ArtifactTensor]) -> bool:
    """Returns whether the model is faster with the tried schedules than in this library. Only CPU
    libraries are compared: a GPU computes on while it is timed."""
    if _has_other_files(request) or request.target.kind != "llvm":
        return False
    tried = Path(request.scratch) / _TRIED
    return is_faster_whole(tried, without, inputs=inputs, seed=request.seed)


def _has_other_files(request: BuildModel) -> bool:
    form = form_for(request.target, request.settings)
    return form is not None or request.precision != FLOAT32
