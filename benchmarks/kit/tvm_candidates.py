"""All that TVM offers of a model, built from the same records."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks.kit.neighbours import answers
from benchmarks.kit.our_model import imported, tuned
from tunegate.artifacts.builds import Build, unbuilt
from tunegate.artifacts.candidates import FLOAT32, CandidateBuild
from tunegate.artifacts.tasks import ScheduleSource
from tunegate.errors import TunegateError
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler
from tunegate_cache.format.records import TuningRecord, WorkloadKey


def tvm_builds(
    candidates: Collection[CandidateBuild],
    job: ModelJob,
    minutes: float,
    samples: int,
    scratch: Path,
) -> dict[str, Build]:
    """Tunes for so long, then builds each candidate into a directory of its name. A model that the
    compiler does not take is refused by all."""
    compiler = MetaScheduleCompiler(scratch / "compiler", seed=1)
    try:
        records = _records(compiler, job, minutes, scratch) if minutes else {}
        return {
            each.name: _built(compiler, each, job, records, samples, scratch) for each in candidates
        }
    except TunegateError as error:
        return {each.name: unbuilt(str(error)) for each in candidates}
    finally:
        compiler.close()


def _records(
    compiler: MetaScheduleCompiler, job: ModelJob, minutes: float, scratch: Path
) -> Mapping[WorkloadKey, Sequence[TuningRecord]]:
    named = msgspec.structs.replace(job, path="m.onnx")
    tasks = imported(compiler, named)
    outcomes = tuned(
        job.file,
        job.target,
        tasks,
        answers(tasks, None, scratch),
        60 * minutes,
        lambda _: True,
        scratch,
        shapes=job.shapes,
    )
    return {key: outcome.records for key, outcome in outcomes.items() if outcome.records}


def _built(
    compiler: MetaScheduleCompiler,
    candidate: CandidateBuild,
    job: ModelJob,
    records: Mapping[WorkloadKey, Sequence[TuningRecord]],
    samples: int,
    scratch: Path,
) -> Build:
    sources: dict[WorkloadKey, ScheduleSource] = dict.fromkeys(records, "search")
    work = BuildJob(
        model=job,
        records=records,
        sources=sources,
        directory=scratch / candidate.name,
        variant=candidate.variant,
        settings=candidate.settings,
        samples=samples if candidate.precision != FLOAT32 else 0,
    )
    (build,) = compiler.build([work])
    return build
