"""What ships: of the builds of a side, the one for the faster runtime.

Both sides are decided alike, so that the gate sees the change and not a coin: a runtime must be
faster by more than the noise to displace the one that the base has.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tunegate.artifacts.builds import (
    Build,
    Cell,
    CellBuilds,
    CellCandidates,
    Runtime,
    RuntimeChoice,
)
from tunegate.artifacts.changes import Side
from tunegate.errors import MeasurementError
from tunegate.ports import Benchmarker, Progress, Shipping
from tunegate.stages.build import build_directory
from tunegate.tools import RunContext

CLEAR = 0.10
"""An effect (ln of the ratio) of this size in one launch needs no second one."""
RUNTIME_NOISE = 0.02
"""A smaller effect does not displace what is there."""
LAUNCHES = 3
_PAIRS = 4


def choose_runtime(
    candidates: Sequence[CellCandidates],
    *,
    benchmarker: Benchmarker,
    shipping: Shipping,
    context: RunContext,
) -> tuple[CellBuilds, ...]:
    """The cells with one build a side, each in the directory that users know. A cell whose sides
    differ in nothing but weights is measured once."""
    kept = _Kept(context.out, shipping)
    choosing = _Choosing(context.out, benchmarker, context.progress)
    chosen = []
    for each in candidates:
        base = _comparable(each, choosing.of(each.cell, each.base, default=None, like=None))
        default = base.runtime if base is not None else "tvm"
        head = choosing.of(each.cell, each.head, default=default, like=_twin(each, base))
        chosen.append(
            CellBuilds(
                cell=each.cell,
                base=kept(each.cell, "base", base, each.base),
                head=kept(each.cell, "head", head, each.head),
            )
        )
    return tuple(chosen)


class _Choosing:
    def __init__(self, out: Path, benchmarker: Benchmarker, progress: Progress) -> None:
        self._out, self._benchmarker, self._progress = out, benchmarker, progress

    def of(
        self, cell: Cell, builds: Sequence[Build], *, default: Runtime | None, like: Build | None
    ) -> Build | None:
        """`default` is what nothing but a clear gain displaces; `like` decides where
        it is given. Without either, builds that cannot be measured are an error:
        nobody knows which one ships."""
        usable = {build.runtime: build for build in builds if build.error is None}
        if len(builds) <= 1 or not usable:
            return builds[0] if builds else None
        if len(usable) == 1:
            (only,) = usable.values()
            errors = "; ".join(build.error for build in builds if build.error is not None)
            return msgspec.structs.replace(only, choice=RuntimeChoice(reason=errors))
        if like is not None and like.runtime in usable:
            return msgspec.structs.replace(usable[like.runtime], choice=like.choice)
        self._progress.step(f"choose: TVM or ONNX Runtime for {cell.model} on {cell.target}")
        try:
            runtime, choice = self._measured(usable["tvm"], usable["onnxruntime"], default or "tvm")
        except MeasurementError as error:
            if default is None:
                unknown = f"which runtime the base ships with could not be measured: {error}"
                return msgspec.structs.replace(usable["tvm"], error=unknown, directory="")
            runtime, choice = default, RuntimeChoice(reason=f"not measured: {error}")
        return msgspec.structs.replace(usable[runtime], choice=choice)

    def _measured(
        self, tvm: Build, onnxruntime: Build, default: Runtime
    ) -> tuple[Runtime, RuntimeChoice]:
        bench = self._benchmarker.pair(self._out / tvm.directory, self._out / onnxruntime.directory)
        launches = [bench.launch(_PAIRS)]
        while abs(launches[0].effect) < CLEAR and len(launches) < LAUNCHES:
            launches.append(bench.launch(_PAIRS))
        effect = statistics.median(launch.effect for launch in launches)
        choice = RuntimeChoice(
            tvm_ms=statistics.median(launch.base_ms for launch in launches),
            onnxruntime_ms=statistics.median(launch.head_ms for launch in launches),
        )
        return faster(effect, default), choice


def _comparable(each: CellCandidates, base: Build | None) -> Build | None:
    """The base, unless a build of it crashed that the head has: with what is left it may be slower
    than what ships, and a slower head would pass."""
    of_head = {build.runtime for build in each.head if build.error is None}
    lost = [build for build in each.base if build.crashed and build.runtime in of_head]
    if base is None or base.error is not None or not lost:
        return base
    return msgspec.structs.replace(base, error=lost[0].error, directory="")


def faster(effect: float, default: Runtime) -> Runtime:
    """The faster runtime by the effect of ONNX Runtime against TVM: ln(ONNX Runtime / TVM)."""
    if abs(effect) < RUNTIME_NOISE:
        return default
    return "onnxruntime" if effect < 0 else "tvm"


def _twin(each: CellCandidates, base: Build | None) -> Build | None:
    """The base's build, where the head's kernels and their schedules are the same."""
    kernels = [
        sorted((task.key.workload, task.rid, task.weight) for task in build.tasks)
        for builds in (each.base, each.head)
        for build in builds
        if build.runtime == "tvm" and build.error is None
    ]
    same = len(kernels) == 2 and kernels[0] == kernels[1] != []  # noqa: PLR2004 -- two sides
    return base if same else None


class _Kept:
    """Moves what was chosen to where users know it."""

    def __init__(self, out: Path, shipping: Shipping) -> None:
        self._out, self._shipping = out, shipping

    def __call__(
        self, cell: Cell, side: Side, build: Build | None, candidates: Sequence[Build]
    ) -> Build | None:
        if build is None or build.error is not None:
            return build
        at = build_directory(cell, side)
        others = [
            self._out / each.directory
            for each in candidates
            if each.directory and each.directory != build.directory
        ]
        digest = self._shipping.keep(self._out / build.directory, others, self._out / at)
        return msgspec.structs.replace(build, directory=str(at), digest=digest)
