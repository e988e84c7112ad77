"""Would operators, timed in pairs inside one process, find +1% of a model?

    python -m benchmarks.gate.operator_pairs MODEL ... [--launches 40] [--seconds 1.5]

Builds a model by TVM and measures it against a copy of itself: by launches as the gate makes them,
a process for each side, and by launches of one process that has both sides and times each kernel in
them, block by block in turn. The spread of the effects of launches says what 60 seconds of each
find, with 1% of false alarms by the same bound: a slowdown of the model that comes from one
operator is larger in that operator by its share. Draws of launches with a random sign make the
truth 0.
"""

import json
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from research.one_percent.operating_table import FALSE_ALARMS, SLOWDOWNS, mean_of_launches

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.kernel_threads import use_threads
from benchmarks.kit.models import saved
from benchmarks.kit.our_model import tune
from benchmarks.kit.tables import heading, row
from benchmarks.kit.watched_kernels import WatchedKernels
from tunegate.config import TargetConfig
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.models.seeded_inputs import seeded_inputs
from tunegate.system.output.artifact_file import ArtifactFile

_DRAWS = 4000
_SHOWN_SHARE = 0.04
_BLOCK_SECONDS = 0.05
_GATE_PAIRS = 12


def main() -> None:
    options = command_line(__doc__, "models...", launches=40, seconds=1.5)
    titles = " | ".join(f"+{100 * each:g}%" for each in SLOWDOWNS)
    heading(f"model | timed | share | spread of launches | in 60 s | {titles}", words=(0, 1))
    for name in options.models:
        with scratch_folder() as folder:
            sides = _built(name, folder)
            show(name, *measured(sides, folder, options.launches, options.seconds))


def measured(
    sides: tuple[Path, Path], folder: Path, launches: int, seconds: float
) -> tuple[Mapping[str, tuple[float, Sequence[float]]], Mapping[str, float]]:
    """Returns the effects of each kind of launch, with the seconds that one takes, and the share of
    each kernel in the model's time. Both kinds take turns: what else the machine does befalls
    both."""
    pair = FreshProcesses(folder / "bench", 1).pair(*sides)
    effects: dict[str, list[float]] = defaultdict(list)
    spent: dict[str, list[float]] = defaultdict(list)
    times: dict[str, list[float]] = defaultdict(list)
    for _ in range(launches):
        began = time.monotonic()
        effects["two processes"].append(pair.launch(_GATE_PAIRS).effect)
        spent["two processes"].append(time.monotonic() - began)
        began = time.monotonic()
        order = random.sample([0, 1], 2)
        found = _launch_in_one_process([sides[side] for side in order], seconds)
        spent["one process"].append(time.monotonic() - began)
        for kernel, both in found.items():
            first, second = (both[order.index(side)] for side in (0, 1))
            effects[kernel].append(float(np.log(second / first)))
            times[kernel].append(first)
    median = {kernel: statistics.median(each) for kernel, each in times.items()}
    whole = median["one process"]
    cost = {kind: statistics.fmean(each) for kind, each in spent.items()}
    kinds = {
        kind: (cost.get(kind, cost["one process"]), values) for kind, values in effects.items()
    }
    return kinds, {kernel: ms / whole for kernel, ms in median.items()}


def show(
    name: str, kinds: Mapping[str, tuple[float, Sequence[float]]], shares: Mapping[str, float]
) -> None:
    wholes = ["two processes", "one process"]
    kernels = sorted(set(shares) - {"one process"}, key=lambda kernel: -shares[kernel])
    for kind in [*wholes, *(each for each in kernels if shares[each] >= _SHOWN_SHARE)]:
        cost, effects = kinds[kind]
        share = shares.get(kind, 1.0)
        count = int(60 / cost)
        powers = alarms(np.array(effects), count, share)
        what = f"the model in {kind}" if kind in wholes else f"`{kind}`"
        spread = f"{100 * statistics.stdev(effects):.2f}%"
        cells = (f"{100 * power:.1f}%" for power in powers)
        row(name, what, f"{100 * share:.0f}%", spread, count, *cells)


def alarms(effects: Any, count: int, share: float) -> list[float]:
    """Returns the share of draws with an alarm at each of SLOWDOWNS of the model."""
    rng = np.random.default_rng(1)
    drawn = rng.choice(effects, (_DRAWS, count)) * rng.choice([-1.0, 1.0], (_DRAWS, count))
    noises = np.zeros_like(drawn)
    slower = (np.log1p(slowdown / share) for slowdown in SLOWDOWNS)
    return [float(mean_of_launches(drawn + each, noises, FALSE_ALARMS).mean()) for each in slower]


def _built(name: str, folder: Path) -> tuple[Path, Path]:
    target = TargetConfig(name="cpu", threads=1)
    # In no seconds nothing is tuned: these are the default schedules.
    base = tune(saved(name, folder), target, [0.0], folder / "base").builds[0.0]
    # A library that is opened twice is loaded once: each side has a file of its own.
    shutil.copytree(base, folder / "head")
    return base, folder / "head"


# One process with both sides.


def _launch_in_one_process(sides: Sequence[Path], seconds: float) -> Mapping[str, list[float]]:
    program = f"from {__spec__.name} import run_in_turn; run_in_turn()"
    words = [sys.executable, "-c", program, *map(str, sides), str(seconds)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    found: Mapping[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def run_in_turn() -> None:
    """Prints the median milliseconds of each kernel, and of their sum, on both sides."""
    *builds, seconds = sys.argv[1:]
    use_threads(1)
    sides = [_open(Path(build)) for build in builds]
    for side in sides:
        _run_block(side, _BLOCK_SECONDS * 4)
    for side in sides:
        side.inferences.clear()
    ended = time.monotonic() + float(seconds)
    while time.monotonic() < ended:
        for side in (*sides, *reversed(sides)):
            _run_block(side, _BLOCK_SECONDS)
    found = {
        kernel: [statistics.median(each[kernel] for each in side.inferences) for side in sides]
        for kernel in sides[0].inferences[0]
    }
    sums = [statistics.median(sum(each.values()) for each in side.inferences) for side in sides]
    print(json.dumps({**found, "one process": sums}))


def _open(build: Path) -> WatchedKernels:
    feed = seeded_inputs(ArtifactFile.read(build).inputs, 1)
    return WatchedKernels(build, feed, time.perf_counter)


def _run_block(side: WatchedKernels, seconds: float) -> None:
    ended = time.perf_counter() + seconds
    while time.perf_counter() < ended:
        side.infer()


if __name__ == "__main__":
    main()
