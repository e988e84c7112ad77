"""Do decisions replay? For every workload of the tests' corpus, on llvm and cuda: one process makes
the search space and samples schedules, another makes the space anew and replays their decisions.

    python -m benchmarks.tuning.replay_share [--samples 8]

Prints the table of research/replay.md. No GPU is needed: a space is made for a target, not on it.
"""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import tvm_ffi
from tests.support.models.workload_corpus import primitive, workloads
from tvm import ir

from benchmarks.kit.command import Choice, command_line, scratch_folder
from benchmarks.kit.tables import heading, row
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import canonical_workload
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.tune.protocol import Schedule

TARGETS = {
    "llvm": TargetConfig(name="cpu", kind="llvm", cpu="skylake-avx512", threads=2),
    "cuda": TargetConfig(name="gpu", kind="cuda", arch="sm_90"),
}


def main() -> None:
    options = command_line(
        __doc__,
        samples=8,
        step=Choice(("sample", "replay"), None),
        target=Choice(TARGETS, None),
        file=Path,
    )
    if options.step == "sample":
        options.file.write_bytes(pickle.dumps(sampled(options.target, options.samples)))
    elif options.step == "replay":
        # Written by this program a moment ago, on this machine.
        found = pickle.loads(options.file.read_bytes())
        options.file.write_bytes(pickle.dumps(replayed(options.target, found)))
    else:
        run(options.samples)


def run(samples: int) -> None:
    heading("workload | target | templates | found again | replayed equal", words=(0, 1))
    totals: dict[str, list[int]] = {}
    for target in TARGETS:
        with scratch_folder() as folder:
            file = folder / "sampled"
            for step in ("sample", "replay"):
                line = [
                    sys.executable,
                    "-m",
                    "benchmarks.tuning.replay_share",
                    "--step",
                    step,
                    "--target",
                    target,
                ]
                line += ["--file", str(file), "--samples", str(samples)]
                subprocess.run(line, check=True)
            rows = pickle.loads(file.read_bytes())
        for name, (templates, again, equal, tried) in rows.items():
            row(name, target, templates, again, f"{equal} of {tried}")
        totals[target] = [sum(row[n] for row in rows.values()) for n in range(4)]
    for target, (templates, again, equal, tried) in totals.items():
        share = 100 * equal / tried
        row("**all**", target, templates, again, f"{equal} of {tried} ({share:.1f}%)")


def space_of(name: str, target: str) -> DesignSpace:
    load_intrinsics(TARGETS[target].kind)
    workload = canonical_workload(primitive(workloads()[name]))
    return DesignSpace(workload, tvm_target(TARGETS[target]).target)


def sampled(
    target: str, samples: int
) -> dict[str, tuple[list[str], list[tuple[Schedule | None, str]]]]:
    """Templates of each workload, and schedules as decisions with the module they make."""
    found = {}
    for name in workloads():
        space = space_of(name, target)
        schedules = space.sample(samples, random.Random(1))
        made = [(space.describe(s.trace), str(ir.save_json(s.mod))) for s in schedules]
        found[name] = (sorted(space.templates), made)
    return found


def replayed(
    target: str, found: Mapping[str, tuple[list[str], list[tuple[Schedule | None, str]]]]
) -> dict[str, tuple[int, int, int, int]]:
    """Templates, those found again, schedules that replay to the same module, schedules tried."""
    rows = {}
    for name, (templates, made) in found.items():
        space = space_of(name, target)
        again = len(set(templates) & set(space.templates))
        equal = 0
        for schedule, module in made:
            replay = None if schedule is None else space.replay(schedule)
            equal += replay is not None and tvm_ffi.structural_equal(
                replay.mod, ir.load_json(module)
            )
        rows[name] = (len(templates), again, equal, len(made))
    return rows


if __name__ == "__main__":
    main()
