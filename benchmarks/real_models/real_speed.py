"""Other people's models: untuned, after minutes of tuning, in parts, and under ONNX Runtime.

    python -m benchmarks.real_models.real_speed DIRECTORY [--models magika ...]
        [--seconds 60 180 600] [--threads 1] [--again] [--save NAME --merge]

Takes the models that init_to_gate.py collects in DIRECTORY, at the sizes that `tunegate init`
guesses. Each is tuned once, for the last of the seconds; the builds after the others are made of
the records that were there by then. Then each build runs in turn with ONNX Runtime in this process:
with one thread times are of the processor. What TVM does not take whole has a build in parts alone,
where one pays. `--save NAME --merge` adds the rows of these models to those that are saved, also
when it is stopped: called again it goes on with the models that have none, unless with `--again`.
Two threads need another NAME.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.kit.collected import collected, guessed
from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.our_model import Tuned, imported, tune
from benchmarks.kit.our_model import tuned as tune_tasks
from benchmarks.kit.results import machine, saved_rows
from benchmarks.kit.tables import heading, row
from benchmarks.real_models.hybrid_pieces import PROGRAMS_OF_PARTS, parts_compiler
from tunegate.artifacts.inputs import KnownInputs
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.loader import TvmArtifact, raced
from tunegate.compiler.runtime import use_threads
from tunegate.config import TargetConfig
from tunegate.errors import ModelError, UnsupportedModelError
from tunegate.models.inputs.drawn_inputs import drawn_inputs
from tunegate.models.preparation import prepare
from tunegate.models.prepared import PreparedModel
from tunegate.models.reference.part_session import opened_part
from tunegate.models.seeded_inputs import seeded_inputs
from tunegate.ports import BuildJob, ModelJob
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate_cache.format.records import TuningRecord, WorkloadKey
from tunegate_hybrid.loader import HybridArtifact

KnownRecords = Mapping[WorkloadKey, tuple[TuningRecord, ...]]


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
    columns = ["untuned", *(minutes(each) for each in options.seconds), "in parts"]
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
        fixed = prepared.fixed
        tuned = tuned_whole(fixed, target, options.seconds, folder)
        records = tuned.records if tuned else tuned_parts(fixed, target, options.seconds, folder)
        whole = tuned.builds if tuned else {}
        builds = {"untuned" if not at else minutes(at): at_ for at, at_ in whole.items()}
        parts = in_parts(fixed, target, records, folder)
        if isinstance(parts, Path):
            builds["in parts"] = parts
        if not builds:
            return Speed(other_ms=alone(prepared, options.threads), said=str(parts))
        return timed(fixed, builds, options.threads, tuned.run.trials if tuned else 0)
    except (AssertionError, ModelError, ValueError) as error:
        return Speed(other_ms=alone(prepared, options.threads), said=str(error))


def tuned_whole(
    model: Path, target: TargetConfig, seconds: Sequence[float], folder: Path
) -> Tuned | None:
    """Returns the builds, or None where TVM does not take the model whole."""
    try:
        return tune(model, target, [0.0, *seconds], folder / "tuned")
    except UnsupportedModelError:
        return None


def tuned_parts(
    model: Path, target: TargetConfig, seconds: Sequence[float], folder: Path
) -> KnownRecords:
    """The records of its parts after the last of the seconds."""
    compiler = parts_compiler(folder / "lister", target)
    job = ModelJob(file=model, path="m.onnx", shapes={}, target=target)
    tasks = imported(compiler, job)
    compiler.close()
    found = tune_tasks(
        model,
        target,
        tasks,
        {},
        seconds[-1],
        lambda _: True,
        folder / "of-parts",
        programs=PROGRAMS_OF_PARTS,
    )
    return {key: each.records for key, each in found.items() if each.records}


def in_parts(model: Path, target: TargetConfig, records: KnownRecords, folder: Path) -> Path | str:
    """The build in parts, or why there is none."""
    compiler = parts_compiler(folder / "parts-compiler", target)
    job = ModelJob(file=model, path="m.onnx", shapes={}, target=target)
    whole, parts = (
        BuildJob(
            model=job,
            records=records,
            sources=dict.fromkeys(records, "search"),
            directory=folder / name,
        )
        for name in ("whole", "parts")
    )
    compiler.build([whole])
    (build,) = compiler.builder.build([parts])
    compiler.close()
    return build.error or parts.directory


def alone(model: PreparedModel, threads: int) -> float:
    """ONNX Runtime's milliseconds for the model as it is."""
    session = opened_part(model.original, threads)
    feed = seeded_inputs(drawn_inputs(model, KnownInputs(), "m.onnx"), 1)
    run = partial(session.run, None, feed)
    return statistics.median(raced(run, run, threads))


def timed(model: Path, builds: Mapping[str, Path], threads: int, trials: int) -> Speed:
    session = opened_part(model, threads)
    found: dict[str, float] = {}
    others: list[float] = []
    for name, place in builds.items():
        artifact = ArtifactFile.read(place)
        feed = seeded_inputs(artifact.inputs, 1)
        kind = HybridArtifact if artifact.runtime == "hybrid" else TvmArtifact
        compiled = kind(place, artifact).bound(feed)
        found[name], other = raced(compiled, partial(session.run, None, feed), threads)
        others.append(other)
    return Speed(found, statistics.median(others), trials)


if __name__ == "__main__":
    main()
