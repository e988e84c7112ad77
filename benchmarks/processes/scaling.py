"""Counts the devices that one engine keeps busy: the whole tuning loop and its search, with sleep
for devices.

    python -m benchmarks.processes.scaling [squeezenet] [--devices 1 2 4 8 16 32 64]
        [--seconds-per-candidate 2] [--batches 24]

Everything is the product's but the workers: processes that take the time of a candidate (25% more
or less) and answer. Counted is what happens between the first tenth of the trials and the last one.
The engine's own work is the CPU time of the deciding process; that of the search is its children's.
Prints the table of docs/benchmarks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import msgspec

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.models import TARGET, saved
from benchmarks.kit.our_model import shard_of, tasks_of, tuner_of
from benchmarks.kit.tables import heading
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.plans import Budget
from tunegate.artifacts.tasks import TuningTask
from tunegate.system.machine.device_lock import Claim
from tunegate.system.processes.child import Child
from tunegate.system.processes.memory_limit import memory_limit
from tunegate.tune import tuner as tuner_module
from tunegate.tune.protocol import Measured, Placement, Slot
from tunegate.tune.workers import WorkerPool
from tunegate_cache.format.records import TuningRecord

MIN_TRIALS = 40
ENDLESS = Budget(seconds=None, trials=100_000, min_gain_percent_per_minute=0.0)
TICKS = os.sysconf("SC_CLK_TCK")


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """The work of so many devices in the counted time."""

    devices: int
    trials: int
    seconds: float
    engine_seconds: float
    search_seconds: float


class SleepingDevices:
    """An executor: as LocalExecutor, on devices that are not there."""

    def __init__(self, devices: int, seconds: float, directory: Path) -> None:
        self._devices, self._seconds, self._directory = devices, seconds, directory

    def pool(self) -> WorkerPool:
        places = [
            Placement(
                slots=(
                    Slot(
                        claim=Claim(
                            uuid=f"device-{n}", directory=str(self._directory), wait_seconds=0.0
                        )
                    ),
                ),
                limit_seconds=60.0,
            )
            for n in range(self._devices)
        ]
        return WorkerPool(places, self._begin)

    def confirming_pool(self, threads: int) -> None:
        return None

    def _begin(self, place: Placement) -> Child[Measured]:
        variables = {"SECONDS_PER_CANDIDATE": str(self._seconds)}
        log = self._directory / "workers.log"
        memory = memory_limit(children=self._devices)
        return Child(
            "benchmarks.processes.sleeping_worker",
            Measured,
            variables=variables,
            memory=memory,
            log=log,
        )


class Watch:
    """Called with every finished batch: when, and the CPU time until then."""

    def __init__(self) -> None:
        self.marks: list[tuple[int, float, float, float]] = []

    def __call__(self, records: Sequence[TuningRecord]) -> bool:
        searched = search_seconds()
        if searched:  # else the run has ended, and this is what was left over
            done = len(records) + self.trials
            self.marks.append((done, time.monotonic(), time.process_time(), searched))
        return True

    @property
    def trials(self) -> int:
        return self.marks[-1][0] if self.marks else 0

    def point(self, devices: int) -> Point:
        first = next(mark for mark in self.marks if mark[0] >= self.trials / 10)
        done, seconds, engine, search = (b - a for a, b in zip(first, self.marks[-1], strict=True))
        return Point(
            devices=devices,
            trials=int(done),
            seconds=seconds,
            engine_seconds=engine,
            search_seconds=search,
        )


def main() -> None:
    options = command_line(
        __doc__,
        "model=squeezenet",
        devices=[1, 2, 4, 8, 16, 32, 64],
        seconds_per_candidate=2.0,
        batches=24,
    )
    with scratch_folder() as scratch:
        model = saved(options.model, scratch)
        tasks = tasks_of(model, TARGET, scratch)
        seconds = options.seconds_per_candidate
        points = []
        for devices in options.devices:
            trials = max(MIN_TRIALS, options.batches * devices)
            points.append(measured(devices, trials, seconds, tasks, model, scratch))
            print(points[-1], flush=True)
    show(points, seconds)


def measured(
    devices: int,
    trials: int,
    seconds: float,
    tasks: Sequence[TuningTask],
    model: Path,
    scratch: Path,
) -> Point:
    def sleeping(_kind: str, _gpus: object, directory: Path, _program: str) -> SleepingDevices:
        return SleepingDevices(devices, seconds, directory)

    watch = Watch()
    with patch.object(tuner_module, "LocalExecutor", sleeping):
        outcomes = tuner_of(TARGET, scratch).tune(
            shard_of(tasks, TARGET, ENDLESS), {("m.onnx", "head"): ShapedModel(model, {})}, watch
        )
        with closing(outcomes):
            while watch.trials < trials:
                next(outcomes)
    return watch.point(devices)


def search_seconds() -> float:
    """CPU time of the search children, found among ours by what they run."""
    found = 0.0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            stat = (process / "stat").read_text().rpartition(")")[2].split()
            line = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if int(stat[1]) == os.getpid() and b"tunegate.compiler.searcher" in line:
            found += (int(stat[11]) + int(stat[12])) / TICKS
    return found


def show(points: Sequence[Point], seconds: float) -> None:
    alone = points[0].trials / points[0].seconds / points[0].devices
    heading(
        f"devices, {seconds:g} s for a candidate | trials | trials/s | of linear | "
        f"engine, ms of CPU a trial | search, ms of CPU a trial",
        words=(),
    )
    for point in points:
        rate = point.trials / point.seconds
        print(
            f"| {point.devices} | {point.trials} | {rate:.2f} | "
            f"{100 * rate / point.devices / alone:.0f}% | "
            f"{1e3 * point.engine_seconds / point.trials:.2f} | "
            f"{1e3 * point.search_seconds / point.trials:.1f} |"
        )


if __name__ == "__main__":
    main()
