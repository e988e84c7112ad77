"""Loads a compiled artifact, with the same few lines that `docs/artifacts.md` gives to users."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import tvm
from tvm.runtime.vm import VMInstrumentReturnKind

from tunegate.compiler.runtime import arguments_of, device_of_kind, machine_of, watched_machine
from tunegate.models.seeded_inputs import seeded_inputs
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor


class TvmArtifact:
    """A shared library of kernels, loaded in this process."""

    def __init__(self, directory: Path, artifact: ArtifactFile) -> None:
        self._file, self._artifact = directory / artifact.file, artifact
        self._device = device_of_kind(artifact.device)

    def run(self, feed: Mapping[str, Any]) -> Sequence[Any]:
        """Returns the output arrays."""
        outputs = self._main(*self._inputs(feed))
        several = len(self._artifact.outputs) > 1
        return [output.numpy() for output in (outputs if several else [outputs])]

    def bound(self, feed: Mapping[str, Any]) -> Callable[[], object]:
        """Returns a function that runs one inference: only the call and the wait for the device."""
        main, inputs, device = self._main, self._inputs(feed), self._device

        def run() -> object:
            output = main(*inputs)
            device.sync()
            return output

        return run

    def watched(self, feed: Mapping[str, Any]) -> WatchedKernels:
        return WatchedKernels(self._file, self._artifact.tasks, self._device, self._inputs(feed))

    def _inputs(self, feed: Mapping[str, Any]) -> list[Any]:
        return arguments_of(self._artifact.inputs, feed, self._device)

    @cached_property
    def _main(self) -> Any:
        return machine_of(self._file, self._device)[self._artifact.entry]


def device_exists(kind: str) -> bool:
    return kind != "cuda" or bool(tvm.cuda().exist)


# Times of kernels inside a model: of one build, or of two builds in turn.

KERNEL_NOISE = 1.03
"""The ratio from which a kernel counts as slower."""
_ROUNDS, _MOST_ROUNDS = 5, 40
_SECONDS, _MOST_SECONDS = 2.0, 20.0
"""The time after which the minimum of rounds is enough, and the time after which any number is."""
_FAR_SLOWER = 10.0
"""A model that takes this many times as long as with default schedules is run once."""
_PACKED = "_prepacked"
BRANCH = "tunegate_branch"
"""The name of a function that is a branch of an If begins so."""
NO_KERNELS = ("vm.builtin.", BRANCH)
"""The beginnings of the names of functions that are none."""


def slower_in_model(
    library: Path,
    reference: Path,
    *,
    inputs: Sequence[ArtifactTensor],
    kernels: Collection[str],
    kind: str,
    seed: int,
    running: Callable[[str], None] = lambda _: None,
) -> frozenset[str]:
    """Returns the kernels that take longer in `library` than in `reference`, both in the median and
    at best. Inferences of the two alternate, on the inputs of `seed`: a neighbour on the machine
    slows only a few of them. `running` gets the name of each kernel of `library` before it runs,
    and '' after it."""
    device = device_of_kind(kind)
    arguments = arguments_of(inputs, seeded_inputs(inputs, seed), device)
    builds = [_Watched(library, device, running), _Watched(reference, device)]
    start = time.monotonic()
    for number in range(1, _MOST_ROUNDS + 1):
        for each in builds:
            each.run(arguments)
        seconds = time.monotonic() - start
        is_enough = number >= _ROUNDS and seconds > _SECONDS
        if is_enough or _is_far_slower(*builds) or seconds > _MOST_SECONDS:
            break
    slower = set(kernels)
    for statistic in (statistics.median, min):
        ours, theirs = (each.microseconds(statistic) for each in builds)
        slower &= {n for n in theirs if ours.get(n, 0.0) > KERNEL_NOISE * theirs[n]}
    return frozenset(slower)


def is_faster_whole(
    library: Path, reference: Path, *, inputs: Sequence[ArtifactTensor], seed: int
) -> bool:
    """Returns whether `library` is the faster of two CPU builds on the inputs of `seed`: both in
    turn for half a second, without profiling kernels."""
    device = device_of_kind("llvm")
    arguments = arguments_of(inputs, seeded_inputs(inputs, seed), device)
    ours, theirs = (
        partial(machine_of(path, device)["main"], *arguments) for path in (library, reference)
    )
    our_seconds, their_seconds = (_call_seconds(run, 1, time.monotonic) for run in (ours, theirs))
    if our_seconds > _FAR_SLOWER * their_seconds:
        return False
    our_ms, their_ms = race_in_turns(ours, theirs, tvm.get_global_func("runtime.NumThreads")())
    return our_ms < their_ms


def _is_far_slower(own: _Watched, other: _Watched) -> bool:
    our_us, their_us = (sum(each.microseconds().values()) for each in (own, other))
    return our_us > _FAR_SLOWER * their_us


def _by_layer(
    microseconds: Mapping[str, float], tasks: Iterable[Mapping[str, Any]]
) -> dict[str, float]:
    """Returns the milliseconds by layer. Kernels of one layer are added up."""
    labels = {task["function"]: task["name"] for task in tasks}
    times: dict[str, float] = defaultdict(float)
    for name, each in microseconds.items():
        times[labels.get(name, name)] += each / 1e3
    return dict(times)


class WatchedKernels:
    """A build whose kernels are timed in each inference, by layer name. The virtual machine's own
    work between them, such as memory for tensors, belongs to no layer."""

    def __init__(
        self,
        library: Path,
        tasks: Sequence[Mapping[str, Any]],
        device: Any,
        arguments: list[Any],
    ) -> None:
        self._watched, self._tasks, self._arguments = _Watched(library, device), tasks, arguments

    def infer(self) -> None:
        self._watched.run(self._arguments)

    def inferences_ms(self) -> list[dict[str, float]]:
        return [_by_layer(run, self._tasks) for run in self._watched.runs]


class _Watched:
    """A build whose virtual machine reports when a kernel starts and ends. Built-in calls are left
    out: the one that captures a graph contains the kernels."""

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

    @property
    def runs(self) -> Sequence[Mapping[str, float]]:
        """The microseconds of each kernel in each inference so far."""
        return self._runs

    def microseconds(
        self, statistic: Callable[[Iterable[float]], float] = statistics.median
    ) -> dict[str, float]:
        """Returns the microseconds of each kernel in one inference, all its calls together. The
        first run warms up if there are others."""
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
        if name.startswith(NO_KERNELS):
            return VMInstrumentReturnKind.NO_OP
        kernel = name.removesuffix(_PACKED)
        if before:
            self._running(kernel)
            self._began = time.perf_counter()
        else:
            self._runs[-1][kernel] += (time.perf_counter() - self._began) * 1e6
            self._running("")
        return VMInstrumentReturnKind.NO_OP


# Finds the faster of two ways to compute the same, here and now: both in turn, for a moment.

_RACE_SECONDS = 0.5
_FEWEST, _MOST = 5, 100
_ROUND_SECONDS = 0.01
"""The length of a round: after each switch the caches hold the other's data."""


def race_in_turns(
    run: Callable[[], object], other_run: Callable[[], object], threads: int
) -> tuple[float, float]:
    """Returns the milliseconds of each way. The two alternate for half a second, or five rounds;
    other load on the machine shows in the slower rounds."""
    # The CPU time of a single thread leaves out whoever else had the core meanwhile.
    clock = time.process_time if threads == 1 else time.perf_counter
    counts = [_warm(run, clock), _warm(other_run, clock)]
    seconds: list[tuple[float, float]] = []
    until = time.perf_counter() + _RACE_SECONDS
    while len(seconds) < _FEWEST or (time.perf_counter() < until and len(seconds) < _MOST):
        seconds.append(
            (_call_seconds(run, counts[0], clock), _call_seconds(other_run, counts[1], clock))
        )
    ours, theirs = (statistics.quantiles(each)[0] for each in zip(*seconds, strict=True))
    return 1000 * ours, 1000 * theirs


def _warm(run: Callable[[], object], clock: Callable[[], float]) -> int:
    """Warms up, and returns how many inferences make a round. By a wall clock, a busy machine would
    shorten rounds to one inference, with cold caches."""
    run()
    return max(1, int(_ROUND_SECONDS / max(_call_seconds(run, 2, clock), 1e-9)))


def _call_seconds(run: Callable[[], object], count: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(count):
        run()
    return (clock() - start) / count
