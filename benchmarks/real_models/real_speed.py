"""Other people's models: untuned, after minutes of tuning, and under ONNX Runtime.

    python -m benchmarks.real_models.real_speed DIRECTORY [--models magika ...]
        [--seconds 60 180 600] [--threads 1] [--again] [--save NAME --merge]

Takes the models that init_to_gate.py collects in DIRECTORY, at the sizes that `tunegate init`
guesses. Each is tuned once, for the last of the seconds; the builds after the others are made of
the records that were there by then. Then each build runs in turn with ONNX Runtime in this process:
with one thread times are of the processor. `--save NAME --merge` adds the rows of these models to
those that are saved, also when it is stopped: called again it goes on with the models that have
none, unless with `--again`. Two threads need another NAME.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.kit.collected import collected, guessed
from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.kernel_threads import use_threads
from benchmarks.kit.our_model import opened_reference, tune
from benchmarks.kit.results import machine, saved_rows
from benchmarks.kit.tables import heading, row
from tunegate.artifacts.inputs import KnownInputs
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.loader import TvmArtifact, race_in_turns
from tunegate.config import TargetConfig
from tunegate.errors import ModelError
from tunegate.models.inputs.drawn_inputs import draw_inputs
from tunegate.models.preparation import prepare
from tunegate.models.prepared import PreparedModel
from tunegate.models.seeded_inputs import seeded_inputs
from tunegate.system.output.artifact_file import ArtifactFile


class Speed(NamedTuple):
    """Milliseconds of each build, by its column, and of ONNX Runtime; `said` is why there is no
    build."""

    builds: Mapping[str, float] = {}
    other_ms: float | None = None
    trials: int = 0
    said: str = ""


def main() -> None:
    options = command_line(
        __doc__,
        ("directory", Path),
        models=[""],
        seconds=[60.0, 180.0, 600.0],
        threads=1,
        again=False,
    )
    done = {} if options.again else saved_rows()
    columns = ["untuned", *(minutes(each) for each in options.seconds)]
    titles = ["model", *columns, "ONNX Runtime", "trials", "measured"]
    heading(" | ".join(titles), words=(0, len(titles) - 1))
    for name, file in collected(options.directory).items():
        if name not in done and (name in options.models or options.models == [""]):
            with scratch_folder() as folder:
                speed = of_model(file, options, folder)
            cells = [milliseconds(speed.builds.get(column)) for column in columns]
            where = speed.said or f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, {machine()}"
            row(name, *cells, milliseconds(speed.other_ms), speed.trials, where)


def minutes(seconds: float) -> str:
    return f"{seconds / 60:g} min"


def milliseconds(found: float | None) -> str:
    return "–" if found is None else f"{found:.3f}"


def of_model(file: Path, options: argparse.Namespace, folder: Path) -> Speed:
    target = TargetConfig(name="cpu", threads=options.threads)
    load_intrinsics("llvm")
    use_threads(options.threads)
    prepared = prepare(file, shapes=guessed(file), into=folder / "fixed", path="m.onnx")
    try:
        tuned = tune(prepared.fixed, target, [0.0, *options.seconds], folder / "tuned")
        builds = {minutes(at) if at else "untuned": place for at, place in tuned.builds.items()}
        return timed(prepared.fixed, builds, options.threads, tuned.run.trials)
    except (AssertionError, ModelError, ValueError) as error:
        return Speed(other_ms=alone(prepared, options.threads), said=str(error))


def alone(model: PreparedModel, threads: int) -> float:
    """ONNX Runtime's milliseconds for the model as it is."""
    session = opened_reference(model.original, threads)
    feed = seeded_inputs(draw_inputs(model, KnownInputs(), "m.onnx").tensors, 1)
    run = partial(session.run, None, feed)
    return statistics.median(race_in_turns(run, run, threads))


def timed(model: Path, builds: Mapping[str, Path], threads: int, trials: int) -> Speed:
    session = opened_reference(model, threads)
    found: dict[str, float] = {}
    others: list[float] = []
    for name, place in builds.items():
        artifact = ArtifactFile.read(place)
        feed = seeded_inputs(artifact.inputs, 1)
        compiled = TvmArtifact(place, artifact).bound(feed)
        found[name], other = race_in_turns(compiled, partial(session.run, None, feed), threads)
        others.append(other)
    return Speed(found, statistics.median(others), trials)


if __name__ == "__main__":
    main()
