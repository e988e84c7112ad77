"""Runs the gate on machines that disturb it, and counts its wrong verdicts.

    python -m benchmarks.gate.hostile_hosts [--gates 4] [--seconds 60]
        [--host cpu-hog ...]

Whole gates of a small convolutional model under ONNX Runtime with a margin of 3%, against itself
and with 10% put into the head, while a hog computes on every core, another one streams through
memory, the kernel stops the whole process tree for most of every tenth of a second (a CPU quota of
a cgroup; needs root), the measuring processes are killed, or the wall clock jumps by two hours
every three seconds (a library put before the C library; needs gcc). A fail of the model against
itself, and a pass of what is 10% slower, are wrong; `undecided` and `invalid-env` are not. Prints
the table of docs/how-the-gate-decides.md.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from benchmarks.gate.collect_launches import built
from benchmarks.kit.command import Choice, command_line, scratch_folder
from benchmarks.kit.tables import heading
from benchmarks.processes.meanwhile import meanwhile
from tunegate.config import GateConfig
from tunegate.errors import MeasurementError
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.measure.paired_launches import launch_until_decided
from tunegate.system.processes import interpreter

MARGIN_PERCENT = 3.0
SLOWER_PERCENT = (0.0, 10.0)
COMPUTING = "while True: sum(range(100_000))"
STREAMING = """
import numpy as np
block = np.ones(32_000_000)
while True:
    block += 1.0
"""
JUMPING_CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t which, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    struct timespec steady;
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(which, now);
    if (failed || which != CLOCK_REALTIME) return failed;
    real(CLOCK_MONOTONIC, &steady);
    now->tv_sec += steady.tv_sec / 3 % 2 ? 3600 : -3600;
    return 0;
}
"""
CONTROLLERS = (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup"))
PERIOD_US, QUOTA_US = 100_000, 60_000


def main() -> None:
    options = command_line(__doc__, gates=4, seconds=60.0, host=Choice(list(HOSTS), list(HOSTS)))
    gate = GateConfig(margin_percent=MARGIN_PERCENT, seconds=options.seconds)
    heading(
        "host | put in | gates | fail | pass | undecided | invalid-env | wrong | seconds, median"
    )
    with scratch_folder() as folder:
        artifact = built("cnn-ort-busy", folder / "model")
        bench = FreshProcesses(folder / "bench", 1)
        for host in options.host:
            for percent in SLOWER_PERCENT:
                with HOSTS[host]():
                    found = [one(bench, artifact, gate, percent) for _ in range(options.gates)]
                show(host, percent, found)


def one(
    bench: FreshProcesses, artifact: Path, gate: GateConfig, percent: float
) -> tuple[str, float]:
    started = time.monotonic()
    head = bench.pair(artifact, artifact, slowdown_percent=percent)
    try:
        found = launch_until_decided(head, bench.pair(artifact, artifact), gate, 1, lambda _: None)
    except MeasurementError:
        return "invalid-env", time.monotonic() - started
    if found.stopped == "disturbed":
        return "invalid-env", time.monotonic() - started
    said = found.assess(gate)
    return said.decision if said else "undecided", time.monotonic() - started


def show(host: str, percent: float, found: list[tuple[str, float]]) -> None:
    said = Counter(decision for decision, _ in found)
    wrong = said["fail" if percent < MARGIN_PERCENT else "pass"]
    cells = [str(said[each]) for each in ("fail", "pass", "undecided", "invalid-env")]
    median = statistics.median(seconds for _, seconds in found)
    print(
        f"| {host} | {percent:g}% | {len(found)} | {' | '.join(cells)} | {wrong} | {median:.0f} |",
        flush=True,
    )


@contextmanager
def running(program: str, count: int) -> Iterator[None]:
    hogs = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(count)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


@contextmanager
def hogged() -> Iterator[None]:
    with running(COMPUTING, len(os.sched_getaffinity(0))):
        yield


@contextmanager
def streamed() -> Iterator[None]:
    with running(STREAMING, 1):
        yield


@contextmanager
def throttled() -> Iterator[None]:
    """A quota of 60 ms of CPU in every tenth of a second, for this
    process and all that it starts."""
    group = next(each for each in CONTROLLERS if each.exists()) / f"hostile-{os.getpid()}"
    group.mkdir()
    try:
        if (group / "cpu.max").exists():
            (group / "cpu.max").write_text(f"{QUOTA_US} {PERIOD_US}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(QUOTA_US))
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        (group.parent / "cgroup.procs").write_text(str(os.getpid()))
        for _ in range(50):  # its last children are still ending
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)


@contextmanager
def deadly() -> Iterator[None]:
    """Every 5 to 15 seconds a measuring process is killed."""
    rng = random.Random(1)

    def kill(ended: threading.Event) -> None:
        while not ended.wait(rng.uniform(5, 15)):
            for process in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
                    is_ours = int(parent) == os.getpid()
                    if is_ours and b"bench_worker" in (process / "cmdline").read_bytes():
                        os.kill(int(process.name), signal.SIGKILL)
                        break

    with meanwhile(kill):
        yield


@contextmanager
def jumping() -> Iterator[None]:
    """Makes time jump: for the measuring processes by a library, for
    this one by another `time.time`."""
    passed_on, own = (*interpreter._PASSED_ON, "LD_PRELOAD"), time.time
    with scratch_folder() as folder:
        library = folder / "jump.so"
        source = library.with_suffix(".c")
        source.write_text(JUMPING_CLOCK)
        line = ["gcc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
        subprocess.run(line, check=True)
        with (
            patch.dict(os.environ, {"LD_PRELOAD": str(library)}),
            patch.object(interpreter, "_PASSED_ON", passed_on),
            patch.object(
                time,
                "time",
                lambda: own() + (3600 if int(time.monotonic()) // 3 % 2 else -3600),
            ),
        ):
            yield


HOSTS: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    "cpu-hog": hogged,
    "memory-hog": streamed,
    "throttled": throttled,
    "deadly": deadly,
    "jumping-clock": jumping,
}


if __name__ == "__main__":
    main()
