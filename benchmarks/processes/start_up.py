"""Times help and the version, in whole processes; in turn with another checkout if one is named.

python -m benchmarks.processes.start_up [--runs 15] [--than ../older]
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.kit.command import command_line
from benchmarks.kit.tables import heading, row

LINES = ("--version", "--help", "run --help", "cache gc --help")
HERE = Path(__file__).resolve().parents[2]


class Start(NamedTuple):
    """Seconds of one process: by the clock, and of a processor."""

    clock: float
    processor: float


def main() -> None:
    given = command_line(__doc__, runs=15, than="")
    checkouts = [*([Path(given.than).resolve()] if given.than else []), HERE]
    asked = [(line, root) for line in LINES for root in checkouts]
    rounds = [{each: started(*each) for each in asked} for _ in range(given.runs)]
    heading("command | checkout | seconds | fastest | processor seconds", words=(0, 1))
    for each in asked:
        starts = [found[each] for found in rounds]
        clock = [start.clock for start in starts]
        processor = statistics.median(start.processor for start in starts)
        times = (statistics.median(clock), min(clock), processor)
        row(f"`tunegate {each[0]}`", each[1].name, *(f"{seconds:.3f}" for seconds in times))


def started(line: str, root: Path) -> Start:
    sources = os.pathsep.join(str(root / name) for name in ("action", "plugin", "cache"))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "tunegate", *line.split()],
        env={**os.environ, "PYTHONPATH": sources},
        cwd="/",
        stdout=subprocess.DEVNULL,
        check=True,
    )
    clock = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Start(clock, spent)


if __name__ == "__main__":
    main()
