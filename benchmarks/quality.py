"""End-to-end latency of a model after seconds of tuning: ours, stock's, and ONNX Runtime's.

    PYTHONPATH=.:benchmarks python benchmarks/quality.py squeezenet [--looks 60 300]
        [--stock FOLDER ... --trials 1000] [--donors resnet50 ... --donor-seconds 120] [--shuffled]

Ours tunes once, and what it had after each number of seconds is built; with `--donors` it starts with
a cache that those models were tuned into. Stock (`tune_relax` on the same prepared ONNX file, for the
same target) runs `--trials` trials; folders that hold its database already (stock_model.py) are used as they
are. All builds are then timed by the same code in fresh processes, in turn. Prints the table of
docs/benchmarks.md. Models: the light ones by name, `transformer-N` by its sequence length.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import onnx
from our_model import publish_donor, tune
from stock_model import TARGET, build, named_model
from stock_model import tune as tune_stock

from tunegate.edges.bench.driver import FreshProcesses
from tunegate.edges.onnx_prepare import prepare

ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--looks", type=float, nargs="+", default=[60, 300])
    parser.add_argument("--stock", type=Path, nargs="+")
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--donors", nargs="+", default=[])
    parser.add_argument("--donor-seconds", type=float, default=120)
    parser.add_argument("--shuffled", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        model = saved(options.model, scratch)
        donors = scratch / "donors" if options.donors else None
        for name in options.donors:
            file, seconds = saved(name, scratch), options.donor_seconds
            trials = publish_donor(file, TARGET, seconds, scratch / "donors", scratch / f"d-{name}")
            print(f"donor {name}: {trials} trials in {seconds:g} s", flush=True)
        ours = tune(model, TARGET, options.looks, scratch, donors=donors, shuffled=options.shuffled)
        print(f"ours: {ours.trials} trials; {ours.transfer} of {ours.tasks} tasks borrowed")
        for look, count in ours.unscheduled.items():
            print(f"after {look:g} s: {count} tasks over 1 % on the default schedule")
        builds = {f"ours, {look:g} s": path for look, path in ours.builds.items()}
        folders = options.stock or [scratch / "stock"]
        builds |= stock_builds(options, folders, model, next(iter(builds.values())), scratch)
        show(options.model, model, builds, scratch)


def stock_builds(
    options: argparse.Namespace, folders: Sequence[Path], model: Path, like: Path, scratch: Path
) -> dict[str, Path]:
    """Of each of the folders, tuned now if it is not yet."""
    prepared = prepare(model, shapes={}, into=scratch / "prepared", path="m.onnx")
    builds = {}
    for number, folder in enumerate(folders):
        stock = tune_stock(options.model, folder, options.trials)
        label = f"stock, {stock.trials} trials, {stock.seconds:.0f} s"
        if stock.trials:
            place = scratch / f"stock-build-{number}"
            builds[label] = build(prepared.optimized, folder, place, like)
        else:
            print(f"{label}: nothing to build with")
    return builds


def saved(name: str, scratch: Path) -> Path:
    file = scratch / f"{name}.onnx"
    onnx.save(named_model(name), file)
    return file


def show(name: str, model: Path, builds: dict[str, Path], scratch: Path) -> None:
    bench = FreshProcesses(scratch / "bench")
    times: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for label, directory in builds.items():
            times.setdefault(label, []).append(bench.single_ms(directory))
        reference = bench.reference_ms(model, shapes={}, threads=TARGET.threads)
        times.setdefault("ONNX Runtime", []).append(reference)
    print(f"| {name}, {TARGET.threads} thread | ms (median of {ROUNDS}) | all |")
    print("|---|--:|---|")
    for label, found in times.items():
        every = ", ".join(f"{t:.2f}" for t in found)
        print(f"| {label} | {statistics.median(found):.2f} | {every} |")


if __name__ == "__main__":
    main()
