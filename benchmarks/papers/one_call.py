"""MonoDNN (Zhuang, 2022): one call for the whole model, against a launch for each kernel.

On the CPU a native artifact is the one call, and TVM's virtual machine launches the same kernels
one by one. `gpu.sh` has the GPU's side, where there is a device.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterator
from pathlib import Path

from benchmarks.kernels.native import PAIRS, built
from benchmarks.kit.averages import geometric
from benchmarks.papers.headline import Figure
from tunegate.measure.bench_driver import FreshProcesses

MODELS = ("chain", "conv", "transformer-32")
LAUNCHES = 3


def figures(scratch: Path) -> Iterator[Figure]:
    ratios = {}
    for name in MODELS:
        place = scratch / name
        place.mkdir()
        builds = built(name, argparse.Namespace(real=None, threads=1), place)
        assert builds is not None, f"{name}: no native artifact"
        pair = FreshProcesses(place / "bench", 1).pair(builds["TVM"], builds["native"])
        effects = [pair.launch(PAIRS).effect for _ in range(LAUNCHES)]
        ratios[name] = math.exp(-statistics.median(effects))
    each = ", ".join(f"{ratio:.2f}x {name}" for name, ratio in ratios.items())
    mean, most = geometric(list(ratios.values())), max(ratios.values())
    yield Figure(
        "one-launch",
        f"{mean:.2f}x mean, {most:.2f}x most ({each})",
        "the same kernels, not tuned, one thread, on the CPU; no GPU was measured",
    )
