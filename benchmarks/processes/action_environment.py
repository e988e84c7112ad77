"""Times the action until it has its environment: the first time on a runner, and later.

  python -m benchmarks.processes.action_environment [--locks run] [--rounds 3] [--wheels wheels]

Each round begins with an empty tool cache and empty caches of pip and uv. The packages come from
the index that pip's configuration names, or from a directory of wheels, without a network.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.kit.command import command_line
from benchmarks.kit.tables import heading, row

HERE = Path(__file__).resolve().parents[2]
MAKE = """\
import os, pathlib, sys
from tunegate_environment.kept import environment_for
environment_for(pathlib.Path(sys.argv[1]), os.environ)
"""


def main() -> None:
    given = command_line(__doc__, locks=["run", "run-onnxruntime"], rounds=3, wheels=Path())
    wheels = given.wheels.resolve() if given.wheels != Path() else None
    heading("lock | | seconds | of each round", words=(0, 1, 3))
    for name in given.locks:
        lock = HERE / "requirements" / f"{name}.lock"
        rounds = [round_of(lock, wheels) for _ in range(given.rounds)]
        for title, seconds in zip(("first", "later"), zip(*rounds, strict=True), strict=True):
            row(f"`{lock.name}`", title, f"{statistics.median(seconds):.1f}", seconds_text(seconds))


def round_of(lock: Path, wheels: Path | None) -> tuple[float, float]:
    """The seconds of two processes: one that makes the environment, and one that finds it."""
    with tempfile.TemporaryDirectory() as caches:
        first = seconds_to_have(lock, Path(caches), wheels)
        return first, seconds_to_have(lock, Path(caches), wheels)


def seconds_to_have(lock: Path, caches: Path, wheels: Path | None) -> float:
    named = {
        "RUNNER_TOOL_CACHE": str(caches / "tools"),
        "PIP_CACHE_DIR": str(caches / "pip"),
        "UV_CACHE_DIR": str(caches / "uv"),
        "PYTHONPATH": str(HERE / "action"),
        **({"TUNEGATE_WHEELHOUSE": str(wheels)} if wheels else {}),
    }
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", MAKE, str(lock)],
        env={**os.environ, **named},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - begun


def seconds_text(seconds: Sequence[float]) -> str:
    return ", ".join(f"{each:.1f}" for each in seconds)


if __name__ == "__main__":
    main()
