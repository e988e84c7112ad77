"""Does the gate say what is true, also while something else computes beside it?

    python -m benchmarks.gate.live_gates [--runs 40] [--margin 2] [--seconds 60]
    python -m benchmarks.gate.live_gates --gpu transformer-128 --margin 0.5 --put-in 0 0 1 --rare 0

Runs whole gates of a small convolutional model against itself under ONNX Runtime, with waits of 0,
1, 3, 5 and 10% put into the head and a hog on the other core, and counts the verdicts. Prints the
table of docs/how-the-gate-decides.md. With `--gpu` it is that model by TVM on a GPU whose clock
floats, without a hog. No gate begins after `--lasting` seconds, and what was counted is printed
also if it is interrupted.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from benchmarks.gate.collect_launches import beside, built
from benchmarks.gate.gpu_launches import built as built_for_gpu
from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.models import saved
from benchmarks.kit.tables import heading
from benchmarks.tuning.gpu_tuning import GPU
from tunegate.config import GateConfig
from tunegate.errors import MeasurementError
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.measure.paired_launches import launch_until_decided
from tunegate.ports import Bench

SLOWDOWNS = [0.0, 1.0, 3.0, 5.0, 10.0]
SAID = ("fail", "pass", "undecided", "invalid-env")
Gates = dict[float, list[tuple[str, float]]]
"""The verdict of each gate and its seconds, by the percent put into the head."""


def main() -> None:
    options = command_line(
        __doc__,
        runs=40,
        margin=2.0,
        seconds=60.0,
        lasting=86400.0,
        rare=GateConfig().rare_launches,
        put_in=SLOWDOWNS,
        gpu="",
    )
    until = time.monotonic() + options.lasting
    gate = GateConfig(
        margin_percent=options.margin, seconds=options.seconds, rare_launches=options.rare
    )
    with scratch_folder() as folder, beside(not options.gpu):
        if options.gpu:
            artifact = built_for_gpu(saved(options.gpu, folder), GPU, folder, "model")
        else:
            artifact = built("cnn-ort-busy", folder / "model")
        bench = FreshProcesses(folder / "bench", 1, GPU if options.gpu else None)

        def pair(percent: float) -> Bench:
            return bench.pair(artifact, artifact, slowdown_percent=percent)

        gates = count_verdicts(pair, gate, options.put_in, options.runs, until)
    show(gates)
    if not any(gates.values()):
        raise SystemExit(f"no gate began in {options.lasting:.0f} s: the build took them")


def count_verdicts(
    pair: Callable[[float], Bench],
    gate: GateConfig,
    put_in: Sequence[float],
    runs: int,
    until: float,
) -> Gates:
    """The verdicts of so many gates, each with the next of the slowdowns put in, or of those that
    began before that time."""
    gates: Gates = {percent: [] for percent in put_in}
    with suppress(KeyboardInterrupt):
        for run in range(runs):
            started = time.monotonic()
            if started >= until:
                break
            percent = put_in[run % len(put_in)]
            try:
                found = launch_until_decided(pair(percent), pair(0.0), gate, 1, lambda _: None)
            except MeasurementError as error:
                print(f"a gate ended early: {error}", flush=True)
                said = "invalid-env"
            else:
                judged = found.assess(gate)
                decision: str = judged.decision if judged else "undecided"
                said = "invalid-env" if found.stopped == "disturbed" else decision
            gates[percent].append((said, time.monotonic() - started))
    return gates


def show(gates: Gates) -> None:
    heading(f"put in | gates | {' | '.join(SAID)} | seconds, median", words=())
    for percent, found in gates.items():
        said = [each for each, _ in found]
        cells = " | ".join(str(said.count(each)) for each in SAID)
        median = statistics.median(seconds for _, seconds in found) if found else 0
        print(f"| {percent:g}% | {len(found)} | {cells} | {median:.0f} |")


if __name__ == "__main__":
    main()
