"""Times of kernels inside a model: of one build, or of two that are run in turn."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import tvm
from tvm.runtime.vm import VMInstrumentReturnKind

from tunegate.compiler.race import raced
from tunegate.compiler.runtime import arguments_of, device_of_kind, machine_of, watched_machine
from tunegate.models.seeded_inputs import seeded_inputs
from tunegate.system.output.artifact_file import ArtifactTensor

KERNEL_NOISE = 1.03
"""A kernel counts as slower from this ratio on."""
_ROUNDS, _MOST_ROUNDS = 5, 40
_SECONDS, _MOST_SECONDS = 2.0, 20.0
"""The time after which the fewest rounds are enough, and after which what was run is."""
_FAR_SLOWER = 10.0
"""A model that takes so many times as long as with default schedules is run once."""
_PACKED = "_prepacked"
_OF_THE_MACHINE = "vm.builtin."


def slower_in_model(
    library: Path,
    beside: Path,
    *,
    inputs: Sequence[ArtifactTensor],
    kernels: Collection[str],
    kind: str,
    seed: int,
    running: Callable[[str], None] = lambda _: None,
) -> frozenset[str]:
    """Those of the kernels that take longer in `library` than in `beside`, in the median and at
    best of inferences of each in turn, on the inputs of `seed`: a neighbour on the machine adds to
    a few of them. `running` is told the name of each kernel of `library` before it runs, and ''
    after it."""
    device = device_of_kind(kind)
    arguments = arguments_of(inputs, seeded_inputs(inputs, seed), device)
    watched = [_Watched(library, device, running), _Watched(beside, device)]
    started = time.monotonic()
    for number in range(1, _MOST_ROUNDS + 1):
        for each in watched:
            each.run(arguments)
        seconds = time.monotonic() - started
        is_enough = number >= _ROUNDS and seconds > _SECONDS
        if is_enough or _is_far_slower(*watched) or seconds > _MOST_SECONDS:
            break
    found = set(kernels)
    for statistic in (statistics.median, min):
        ours, theirs = (each.microseconds(statistic) for each in watched)
        found &= {n for n in theirs if ours.get(n, 0.0) > KERNEL_NOISE * theirs[n]}
    return frozenset(found)


def is_faster_whole(
    library: Path, beside: Path, *, inputs: Sequence[ArtifactTensor], seed: int
) -> bool:
    """Returns whether `library` is the faster of two builds for a CPU, on the inputs of `seed`:
    both in turn, for half a second, without profiling kernels."""
    device = device_of_kind("llvm")
    arguments = arguments_of(inputs, seeded_inputs(inputs, seed), device)
    ours, theirs = (
        partial(machine_of(path, device)["main"], *arguments) for path in (library, beside)
    )
    if _seconds(ours) > _FAR_SLOWER * _seconds(theirs):
        return False
    our_ms, their_ms = raced(ours, theirs, tvm.get_global_func("runtime.NumThreads")())
    return our_ms < their_ms


def _seconds(run: Callable[[], object]) -> float:
    started = time.monotonic()
    run()
    return time.monotonic() - started


def _is_far_slower(ours: _Watched, theirs: _Watched) -> bool:
    our_us, their_us = (sum(each.microseconds().values()) for each in (ours, theirs))
    return our_us > _FAR_SLOWER * their_us


def kernels_ms(
    library: Path,
    tasks: Iterable[Mapping[str, Any]],
    device: Any,
    arguments: list[Any],
    inferences: int,
) -> dict[str, float]:
    """Returns what kernels take in one inference, by the names of their layers: medians. What the
    virtual machine does between them, such as memory for tensors, is no layer of the model."""
    watched = _Watched(library, device)
    for _ in range(inferences + 1):
        watched.run(arguments)
    labels = {task["function"]: task["name"] for task in tasks}
    found: dict[str, float] = defaultdict(float)
    for name, microseconds in watched.microseconds().items():
        found[labels.get(name, name)] += microseconds / 1e3
    return dict(found)


class _Watched:
    """A build whose virtual machine says when it calls a kernel, and when that is back. What it
    does by itself is left out: the function that captures a graph has the kernels inside it."""

    def __init__(
        self, library: Path, device: Any, running: Callable[[str], None] = lambda _: None
    ) -> None:
        self._device, self._running = device, running
        self._machine = watched_machine(library, device, self._instrument)
        self._runs: list[dict[str, float]] = []
        self._began = 0.0

    def run(self, arguments: list[Any]) -> None:
        self._runs.append(defaultdict(float))
        self._machine["main"](*arguments)

    def microseconds(
        self, statistic: Callable[[Iterable[float]], float] = statistics.median
    ) -> dict[str, float]:
        """The microseconds of each kernel in one inference, all its calls
        together. The first run warms up, where there are others."""
        runs = self._runs[1:] or self._runs
        return {name: statistic(run[name] for run in runs) for name in runs[0]}

    def _instrument(
        self, _: object, name: str, before: bool, __: object, *___: object
    ) -> VMInstrumentReturnKind:
        try:
            self._device.sync()
        except RuntimeError as error:
            message = f"{name}: {str(error).strip().splitlines()[-1]}"
            raise RuntimeError(message) from error
        if name.startswith(_OF_THE_MACHINE):
            return VMInstrumentReturnKind.NO_OP
        kernel = name.removesuffix(_PACKED)
        if before:
            self._running(kernel)
            self._began = time.perf_counter()
        else:
            self._runs[-1][kernel] += (time.perf_counter() - self._began) * 1e6
            self._running("")
        return VMInstrumentReturnKind.NO_OP
