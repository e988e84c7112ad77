"""Does the same model built again run at the same speed?

    python -m benchmarks.gate.build_spread [--builds 20] [--launches 3]
        [--runtime tvm]

Builds one model so many times, each in a fresh process, and measures every build against the first,
some launches each. What is left of the spread between builds when that between launches is taken
out is the spread of builds. Prints the table of docs/how-the-gate-decides.md.
"""

from __future__ import annotations

import hashlib
import statistics
from pathlib import Path

from benchmarks.gate.collect_launches import built
from benchmarks.kit.command import Choice, command_line, scratch_folder
from benchmarks.kit.tables import heading
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.system.output.artifact_file import ArtifactFile


def main() -> None:
    options = command_line(__doc__, builds=20, launches=3, runtime=Choice(("tvm", "ort"), "tvm"))
    with scratch_folder() as folder:
        builds = [
            built(f"cnn-{options.runtime}-idle", folder / str(number))
            for number in range(options.builds)
        ]
        bench = FreshProcesses(folder / "bench", 1)
        effects = []
        for build in builds[1:]:
            pair = bench.pair(builds[0], build)
            effects.append([100 * pair.launch(12).effect for _ in range(options.launches)])
        different = len({digest(build) for build in builds})
    within = statistics.fmean(statistics.variance(each) for each in effects)
    between = statistics.variance(statistics.fmean(each) for each in effects)
    builds_alone = max(0.0, between - within / options.launches)
    heading(
        "builds | different files | spread of launches | spread of builds | largest effect",
        words=(),
    )
    largest = max((statistics.fmean(each) for each in effects), key=abs)
    print(
        f"| {options.builds} | {different} | {within**0.5:.2f}% | {builds_alone**0.5:.2f}% | "
        f"{largest:+.2f}% |"
    )


def digest(build: Path) -> str:
    return hashlib.sha256((build / ArtifactFile.read(build).file).read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
