"""End-to-end latency of a model after seconds of tuning: ours, stock's, and ONNX Runtime's.

    python -m benchmarks.latency.quality squeezenet [--looks 60 300] [--runs 3]
        [--stock FOLDER ... --trials 1000] [--sources resnet50 ... --source-seconds 120]
            [--shuffled]

Ours tunes, and what it had after each number of seconds is built; with `--sources` it starts with a
cache that those models were tuned into. Stock (`tune_relax` on the same prepared ONNX file, for the
same target) runs `--trials` trials; folders that hold its database already (stock_model.py) are
used as they are. All builds are then timed by the same code in fresh processes, in turn. Prints the
table of docs/benchmarks. Models: the light ones by name, `transformer-N` by its sequence length.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks.kit.command import Many, command_line, scratch_folder
from benchmarks.kit.models import TARGET, saved
from benchmarks.kit.our_model import publish_sources, tune
from benchmarks.kit.tables import heading, row
from benchmarks.latency.stock_model import build
from benchmarks.latency.stock_model import tune as tune_stock
from tunegate.artifacts.inputs import ShapedModel
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.models.preparation import prepare
from tunegate.runtimes.builder import reference_builder

ROUNDS = 5


def main() -> None:
    options = command_line(
        __doc__,
        "model",
        looks=[60.0, 300.0],
        runs=1,
        stock=Many(Path, is_required=False),
        trials=1000,
        sources=[],
        source_seconds=120.0,
        shuffled=False,
    )
    with scratch_folder() as scratch:
        model = saved(options.model, scratch)
        names, seconds = options.sources, options.source_seconds
        sources = publish_sources(names, TARGET, seconds, scratch) if names else None
        builds = our_builds(options, model, sources, scratch)
        (like, *_) = next(iter(builds.values()))
        folders = options.stock or [scratch / "stock"]
        builds |= stock_builds(options, folders, model, like, scratch)
        show(options.model, model, builds, scratch)


def our_builds(
    options: argparse.Namespace, model: Path, sources: Path | None, scratch: Path
) -> dict[str, list[Path]]:
    """The builds of each run by what they are called."""
    builds: dict[str, list[Path]] = {}
    for number in range(options.runs):
        place = scratch / f"run-{number}"
        place.mkdir()
        ours = tune(
            model,
            TARGET,
            options.looks,
            place,
            sources=sources,
            shuffled=options.shuffled,
            seed=number + 1,
        )
        known = f"{ours.transfer} of {len(ours.tasks)} tasks transferred"
        print(f"ours: {ours.run.trials} trials; {known}")
        for look, count in ours.unscheduled.items():
            print(f"after {look:g} s: {count} tasks over 1% on the default schedule", flush=True)
        for look, path in ours.builds.items():
            builds.setdefault(f"ours, {look:g} s", []).append(path)
    return builds


def stock_builds(
    options: argparse.Namespace, folders: Sequence[Path], model: Path, like: Path, scratch: Path
) -> dict[str, list[Path]]:
    """The builds of each folder, which is tuned now if it is not yet."""
    prepared = prepare(model, shapes={}, into=scratch / "prepared", path="m.onnx")
    builds = {}
    for number, folder in enumerate(folders):
        stock = tune_stock(options.model, folder, options.trials)
        label = f"stock, {stock.trials} trials, {stock.seconds:.0f} s"
        if stock.trials:
            place = scratch / f"stock-build-{number}"
            builds[label] = [build(prepared.optimized, folder, place, like)]
        else:
            print(f"{label}: nothing to build with")
    return builds


def show(name: str, model: Path, builds: dict[str, list[Path]], scratch: Path) -> None:
    bench = FreshProcesses(scratch / "bench", 1, reference=reference_builder)
    times: dict[str, list[list[float]]] = {
        label: [[] for _ in its] for label, its in builds.items()
    }
    references: list[float] = []
    for _ in range(ROUNDS):
        for label, directories in builds.items():
            for found, directory in zip(times[label], directories, strict=True):
                found.append(bench.single_ms(directory))
        references.append(bench.reference_ms(ShapedModel(model, {}), threads=TARGET.threads))
    heading(f"{name}, {TARGET.threads} thread | ms | of each run, median of {ROUNDS}", words=(0, 2))
    for label, runs in {**times, "ONNX Runtime": [references]}.items():
        medians = [statistics.median(found) for found in runs]
        every = ", ".join(f"{ms:.2f}" for ms in medians)
        row(label, f"{statistics.median(medians):.2f}", every)


if __name__ == "__main__":
    main()
