"""Does the gate say what is true while something else computes beside it?

    python -m benchmarks.gate.live_gates [--runs 40] [--margin 2] [--seconds 60]

Runs whole gates of a small convolutional model against itself under ONNX Runtime, with waits of 0,
1, 3, 5 and 10% put into the head and a hog on the other core, and counts the verdicts. Prints the
table of docs/how-the-gate-decides.md.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter

from benchmarks.gate.collect_launches import beside, built
from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.tables import heading
from tunegate.config import GateConfig
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.measure.paired_launches import launch_until_decided

SLOWDOWNS = (0.0, 1.0, 3.0, 5.0, 10.0)


def main() -> None:
    options = command_line(__doc__, runs=40, margin=2.0, seconds=60.0)
    gate = GateConfig(margin_percent=options.margin, seconds=options.seconds)
    said: dict[float, Counter[str]] = {percent: Counter() for percent in SLOWDOWNS}
    seconds: dict[float, list[float]] = {percent: [] for percent in SLOWDOWNS}
    with scratch_folder() as folder, beside(True):
        artifact = built("cnn-ort-busy", folder / "model")
        bench = FreshProcesses(folder / "bench", 1)
        for run in range(options.runs):
            percent = SLOWDOWNS[run % len(SLOWDOWNS)]
            started = time.monotonic()
            head = bench.pair(artifact, artifact, slowdown_percent=percent)
            control = bench.pair(artifact, artifact)
            found = launch_until_decided(head, control, gate, 1, lambda _: None)
            judged = found.assessed(gate)
            decision: str = judged.decision if judged else "undecided"
            said[percent]["invalid-env" if found.stopped == "disturbed" else decision] += 1
            seconds[percent].append(time.monotonic() - started)
    heading("put in | gates | fail | pass | undecided | invalid-env | seconds, median", words=())
    for percent in SLOWDOWNS:
        found_of = said[percent]
        cells = [str(found_of[each]) for each in ("fail", "pass", "undecided", "invalid-env")]
        median = statistics.median(seconds[percent])
        print(f"| {percent:g}% | {found_of.total()} | {' | '.join(cells)} | {median:.0f} |")


if __name__ == "__main__":
    main()
