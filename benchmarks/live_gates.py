"""Does the gate say what is true while something else computes beside it?

    PYTHONPATH=. python benchmarks/live_gates.py [--runs 40] [--margin 2] [--seconds 60]

Runs whole gates of a small convolutional model against itself under ONNX Runtime, with waits of 0,
1, 3, 5 and 10 % put into the head and a hog on the other core, and counts the verdicts. Prints the
table of docs/how-the-gate-decides.md.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path

from collect_launches import beside, built

from tunegate.config import GateConfig
from tunegate.edges.bench.driver import FreshProcesses
from tunegate.measuring.paired_launches import launch_until_decided

SLOWDOWNS = (0.0, 1.0, 3.0, 5.0, 10.0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--margin", type=float, default=2.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    gate = GateConfig(margin_percent=options.margin, seconds=options.seconds)
    said: dict[float, Counter[str]] = {percent: Counter() for percent in SLOWDOWNS}
    seconds: dict[float, list[float]] = {percent: [] for percent in SLOWDOWNS}
    with tempfile.TemporaryDirectory() as folder, beside(True):
        artifact = built("cnn-ort-busy", Path(folder) / "model")
        bench = FreshProcesses(Path(folder) / "bench", 1)
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
    print("| put in | gates | fail | pass | undecided | invalid-env | seconds, median |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for percent in SLOWDOWNS:
        found_of = said[percent]
        cells = [str(found_of[each]) for each in ("fail", "pass", "undecided", "invalid-env")]
        median = statistics.median(seconds[percent])
        print(f"| {percent:g} % | {found_of.total()} | {' | '.join(cells)} | {median:.0f} |")


if __name__ == "__main__":
    main()
