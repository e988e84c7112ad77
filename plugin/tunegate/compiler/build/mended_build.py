"""Mends a build that computes other numbers: kernels that are wrong get their default schedule.

Each scheduled kernel runs beside its default schedule on the model's own intermediate values. The
kernels with the largest errors lose their schedule, twice as many in each round, until the whole
model is right. All others keep theirs.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import tvm
from tvm.runtime.vm import VMInstrumentReturnKind

from tunegate.artifacts.builds import NumericCheck, WrongKernel
from tunegate.compiler.build.build_model import ModelBuild, link_model
from tunegate.compiler.build.single_kernel import SingleKernel, built_kernel, kernel_device
from tunegate.compiler.forms import LIBRARY, loaded_form
from tunegate.compiler.layouts.packing import MAIN
from tunegate.compiler.loader import TvmArtifact, device_exists
from tunegate.compiler.opening import OpenModel
from tunegate.compiler.runtime import arguments_of, watched_machine
from tunegate.compiler.schedules.schedule_choice import ScheduleChoice, without_schedules
from tunegate.compiler.targets import ResolvedTarget
from tunegate.compiler.versions import toolchain
from tunegate.config import RUNTIME_ARTIFACT
from tunegate.models.reference.comparison import DidNotRun, Reference, compare_outputs
from tunegate.models.reference.error_samples import sampled_errors
from tunegate.models.reference.tolerance import errors
from tunegate.models.seeded_inputs import checked_feeds
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor
from tunegate.tune.compiler_protocol import CheckArtifact, Checked, CheckReply, MendBuild, Mended
from tunegate.tune.protocol import Failed
from tunegate_cache.format.records import WorkloadKey

_CLEAR = 1e-3
"""The relative error above which a float32 kernel is certainly wrong."""


def mended_build(
    request: MendBuild, last: ModelBuild, model: OpenModel, target: ResolvedTarget
) -> Mended:
    """Returns the mended build, or why there is none."""
    clock = _Clock(time.monotonic(), request.limit_seconds)
    choices = {c.function.name: c for c in last.choices if c.main is not None}
    if not choices:
        return Mended()
    directory = Path(request.build.scratch) / "default"
    usual = msgspec.structs.replace(request.build.target, artifact=RUNTIME_ARTIFACT)
    # Kernels that take the workloads' arguments, whatever order they read weights in.
    plain = msgspec.structs.replace(
        request.build,
        directory=str(directory),
        cuda_graphs=False,
        target=usual,
        launch="",
        keeps_constants=True,
    )
    inputs = ArtifactFile.read(Path(request.build.directory)).inputs
    build = link_model(plain, model, target, without_schedules(last.choices, choices), inputs)
    check = msgspec.structs.replace(request.check, directory=str(directory))
    if _check_of(check) is None:
        return Mended(reason="so does its build with default schedules")
    if clock.is_over(2 * build.seconds):
        return clock.late_reply()
    device = kernel_device(target.target)
    wrong = kernel_errors(
        directory / LIBRARY,
        _kernels(choices.values(), target),
        (arguments_of(inputs, feed, device) for feed in checked_feeds(inputs, request.check.seeds)),
        device,
    )
    return _rebuild(request, last.choices, wrong, (model, target, inputs, clock))


class _Clock(NamedTuple):
    started: float
    limit_seconds: float

    def is_over(self, needed_seconds: float) -> bool:
        return time.monotonic() - self.started + needed_seconds > self.limit_seconds

    def late_reply(self) -> Mended:
        reason = f"which kernel does was not found within {self.limit_seconds:.0f} s"
        return Mended(reason=reason, is_late=True)


def _rebuild(
    request: MendBuild,
    choices: Sequence[ScheduleChoice],
    errors: Sequence[KernelError],
    tools: tuple[OpenModel, ResolvedTarget, tuple[ArtifactTensor, ...], _Clock],
) -> Mended:
    """Drops the clearly wrong kernels first, then twice as many in each round."""
    model, target, inputs, clock = tools
    count = max(1, sum(error.relative > _CLEAR for error in errors))
    seconds = 0.0
    while errors:
        if clock.is_over(seconds):
            return clock.late_reply()
        wrong = errors[:count]
        remaining_choices = without_schedules(choices, {error.name for error in wrong})
        # A path that was loaded once keeps giving the same library.
        directory = Path(request.build.scratch) / f"without-{count}"
        build = msgspec.structs.replace(request.build, directory=str(directory))
        new_build = link_model(build, model, target, remaining_choices, inputs)
        check = _check_of(msgspec.structs.replace(request.check, directory=str(directory)))
        if check is not None:
            shutil.rmtree(request.build.directory)
            shutil.move(directory, request.build.directory)
            kernels = _wrong_kernels(wrong, choices, target)
            return Mended(built=new_build, check=check, wrong=kernels)
        if count >= len(errors):
            break
        count, seconds = 2 * count, new_build.seconds
    return Mended(reason="no kernel by itself does")


def _check_of(request: CheckArtifact) -> NumericCheck | None:
    """Returns the check of a build that passes it, else None."""
    reply = check_numbers(request)
    if not isinstance(reply, Checked) or reply.check is None or not reply.check.passed:
        return None
    return reply.check


def _kernels(
    choices: Iterable[ScheduleChoice], target: ResolvedTarget
) -> Mapping[str, SingleKernel]:
    return {
        choice.function.name: built_kernel(
            tvm.IRModule({MAIN: choice.main.with_attr("global_symbol", MAIN)}), target.target
        )
        for choice in choices
        if choice.main is not None
    }


def _wrong_kernels(
    errors: Iterable[KernelError], choices: Iterable[ScheduleChoice], target: ResolvedTarget
) -> tuple[WrongKernel, ...]:
    by_name = {choice.function.name: choice for choice in choices}
    return tuple(
        WrongKernel(
            key=WorkloadKey(choice.function.workload.digest, target.key),
            shape=choice.function.workload.shape,
            toolchain=toolchain(),
            name=choice.function.label,
            template=schedule.template,
            decisions=schedule.decisions,
            max_absolute=error.absolute,
            max_relative=error.relative,
        )
        for error in errors
        if (schedule := (choice := by_name[error.name]).schedule) is not None
    )


# Errors of each scheduled kernel against its default schedule, on the model's own intermediate
# values.


class KernelError(NamedTuple):
    """A kernel's largest absolute error, and its error relative to the largest output of that
    call."""

    name: str
    absolute: float
    relative: float


def kernel_errors(
    library: Path, kernels: Mapping[str, SingleKernel], feeds: Iterable[Sequence[Any]], device: Any
) -> list[KernelError]:
    """Runs a library of default schedules on the feeds, and at each call the scheduled kernel
    beside it. Returns the errors, the largest relative one first."""
    beside = _Beside(kernels, device)
    machine = watched_machine(library, device, beside.instrument)
    for arguments in feeds:
        machine["main"](*arguments)
    return sorted(beside.errors.values(), key=lambda error: (-error.relative, error.name))


class _Beside:
    def __init__(self, kernels: Mapping[str, SingleKernel], device: Any) -> None:
        self._kernels, self._device = kernels, device
        self.errors: dict[str, KernelError] = {}

    def instrument(
        self, _: object, name: str, before: bool, __: object, *arguments: Any
    ) -> VMInstrumentReturnKind:
        kernel = self._kernels.get(name)
        if kernel is not None and not before:
            self._device.sync()
            self._enter(name, *_call_errors(kernel, arguments, self._device))
        return VMInstrumentReturnKind.NO_OP

    def _enter(self, name: str, absolute: float, relative: float) -> None:
        before = self.errors.get(name, KernelError(name, 0.0, 0.0))
        self.errors[name] = KernelError(
            name, max(before.absolute, absolute), max(before.relative, relative)
        )


def _call_errors(
    kernel: SingleKernel, arguments: Sequence[Any], device: Any
) -> tuple[float, float]:
    *_, reference = arguments
    operands = [*arguments[:-1], tvm.runtime.tensor(np.zeros_like(reference.numpy()), device)]
    kernel.function[MAIN](*kernel.arguments(operands))
    device.sync()
    return errors(operands[-1].numpy().astype("float64"), reference.numpy().astype("float64"))


# Compares a compiled model with the reference. Runs in a child.

_reference = lru_cache(maxsize=1)(Reference)
"""Builds of one model are compared in turn."""


def check_numbers(request: CheckArtifact) -> CheckReply:
    """Returns how far the numbers lie apart, or samples of that where this machine can run the
    model."""
    if not device_exists(request.kind):
        return Checked()
    directory, model = Path(request.directory), Path(request.reference)
    artifact = ArtifactFile.read(directory)
    loaded = loaded_form(directory, artifact) or TvmArtifact(directory, artifact)
    if request.samples:
        names = [output.name for output in artifact.outputs]
        samples = sampled_errors(
            loaded.run, model, artifact.inputs, names, request.samples, cases=request.cases
        )
        if isinstance(samples, DidNotRun):
            return Failed(samples.reason, model=True, memory=samples.memory)
        return Checked(sampled=samples)
    reference = partial(_reference, model, artifact.inputs, request.seeds)
    check = compare_outputs(loaded.run, reference, artifact)
    if isinstance(check, DidNotRun):
        return Failed(check.reason, model=True, memory=check.memory, reference=check.of_reference)
    return Checked(check)
