"""Does the same model built again run at the same speed?

    PYTHONPATH=.:benchmarks python benchmarks/build_spread.py [--builds 20] [--launches 3]
        [--runtime tvm]

Builds one model so many times, each in a fresh process, and measures every build against the first,
some launches each. What is left of the spread between builds when that between launches is taken
out is the spread of builds. Prints the table of docs/how-the-gate-decides.md.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import tempfile
from pathlib import Path

from collect_launches import built

from tunegate.edges.bench.driver import FreshProcesses
from tunegate.edges.output.artifact_file import ArtifactFile


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--builds", type=int, default=20)
    parser.add_argument("--launches", type=int, default=3)
    parser.add_argument("--runtime", choices=("tvm", "ort"), default="tvm")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        builds = [
            built(f"cnn-{options.runtime}-idle", Path(folder) / str(number))
            for number in range(options.builds)
        ]
        bench = FreshProcesses(Path(folder) / "bench", 1)
        effects = []
        for build in builds[1:]:
            pair = bench.pair(builds[0], build)
            effects.append([100 * pair.launch(12).effect for _ in range(options.launches)])
        different = len({digest(build) for build in builds})
    within = statistics.fmean(statistics.variance(each) for each in effects)
    between = statistics.variance(statistics.fmean(each) for each in effects)
    builds_alone = max(0.0, between - within / options.launches)
    print("| builds | different files | spread of launches | spread of builds | largest effect |")
    print("|--:|--:|--:|--:|--:|")
    largest = max((statistics.fmean(each) for each in effects), key=abs)
    print(
        f"| {options.builds} | {different} | {within**0.5:.2f} % | {builds_alone**0.5:.2f} % | "
        f"{largest:+.2f} % |"
    )


def digest(build: Path) -> str:
    return hashlib.sha256((build / ArtifactFile.read(build).file).read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
