"""Times runs with and without the record of an election, for pull requests with new weights.

    python -m benchmarks.gate.remembered_elections DIRECTORY [--models ppocr_v2_cls ...]
        [--minutes 0.5] [--threads 1] [--turns 3]

Collects the models as `init_to_gate.py` does. Each is added to a repository of its own, which tunes
it and elects once. Then come pull requests with new weights, in turn with the record of the
election and without it. Prints the medians of the whole seconds of `tunegate run`, and of what of
them was not spent on measuring.
"""

from __future__ import annotations

import shutil
import statistics
from pathlib import Path

import onnx

from benchmarks.kit.collected import collected
from benchmarks.kit.command import command_line
from benchmarks.kit.model_changes import new_weights
from benchmarks.kit.tables import heading, row
from benchmarks.real_models.init_to_gate import Repository, Run
from tunegate.config import TargetConfig
from tunegate.measure.remembered_elections import election_target


def main() -> None:
    options = command_line(
        __doc__, ("directory", Path), models=[""], minutes=0.5, threads=1, turns=3
    )
    models = collected(options.directory)
    heading(
        "model | ships | elected, s | besides measuring | remembered, s | besides measuring",
        words=(0, 1),
    )
    for name, model in models.items():
        if name in options.models or options.models == [""]:
            repository = Repository(model, options.threads)
            repository.begin(model)
            repository.run("main", options.minutes)
            repository.merge()
            weights = new_weights(onnx.load(model))
            elected, remembered = [], []
            for turn in range(options.turns):
                forget(model.parent)
                elected.append(repository.pull_request(f"a{turn}", weights, options.minutes))
                remembered.append(repository.pull_request(f"b{turn}", weights, options.minutes))
            show(name, elected, remembered)


def forget(place: Path) -> None:
    """Removes the records of elections from the cache of the repository there."""
    digest = election_target(TargetConfig(name="cpu"))
    for found in [*place.rglob(f"g/{digest[:16]}")]:
        shutil.rmtree(found)


def show(name: str, elected: list[Run], remembered: list[Run]) -> None:
    ships = " / ".join(sorted({run.runtime for run in (*elected, *remembered)}))
    cells = [f"{cell:.1f}" for runs in (elected, remembered) for cell in _medians(runs)]
    statuses = sorted({run.status or run.said for run in (*elected, *remembered)})
    row(name, ships, *cells)
    if statuses != ["pass"]:
        print(f"{name}: {', '.join(statuses)}")


def _medians(runs: list[Run]) -> tuple[float, float]:
    whole = statistics.median(run.seconds for run in runs)
    return whole, statistics.median(run.seconds - run.measuring_seconds for run in runs)


if __name__ == "__main__":
    main()
