"""Requests to the compiler's children, each with a private directory of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tunegate.artifacts.candidates import FLOAT32, LAUNCH, PRECISION
from tunegate.artifacts.foreign_schedules import ForeignSchedule
from tunegate.config import TargetConfig
from tunegate.edges.inputs.lasting_seeds import error_seeds
from tunegate.edges.run_seed import derived
from tunegate.engine.compiler_protocol import (
    BuildModel,
    ExportDatabase,
    ImportSchedules,
    ListTasks,
)
from tunegate.engine.protocol import ModelFile
from tunegate.ports import BuildJob, ModelJob
from tunegate_cache.format.records import TuningRecord

OpenedKey = tuple[str, tuple[tuple[str, tuple[int, ...]], ...], TargetConfig]
"""The key of an open model: the file, the shapes and the target."""


_CHECKS = 2


def opened_key(job: ModelJob) -> OpenedKey:
    return str(job.file.resolve()), tuple(sorted(job.shapes.items())), job.target


def has_graphs(job: BuildJob) -> bool:
    """Whether CUDA graphs launch its kernels; a form launches them by itself."""
    target = job.model.target
    return target.kind == "cuda" and target.cuda_graphs and LAUNCH not in job.settings


class CompileRequests:
    """`scratch` holds the directories; builds are checked on inputs of `seed`."""

    def __init__(self, scratch: Path, seed: int) -> None:
        self._scratch, self._seed = scratch, seed
        self._count = 0

    def tasks(self, job: ModelJob) -> ListTasks:
        return ListTasks(model=_file(job), target=job.target, scratch=self._fresh())

    def untuned(self, job: ModelJob) -> BuildJob:
        """Returns the job of a build that is only tried."""
        directory = Path(self._fresh()) / "tried"
        return BuildJob(model=job, records={}, sources={}, directory=directory, is_followed=True)

    def build(self, job: BuildJob, cuda_graphs: bool = False) -> BuildModel:
        return BuildModel(
            model=_file(job.model),
            target=job.model.target,
            records=_records(job),
            sources={key.workload: source for key, source in job.sources.items()},
            directory=str(job.directory.resolve()),
            scratch=self._fresh(),
            cuda_graphs=cuda_graphs,
            seed=derived(self._seed, "in-model"),
            inputs=job.model.inputs,
            settled=tuple(sorted(key.workload for key in job.settled)),
            how=job.how,
            variant=job.variant,
            precision=job.settings.get(PRECISION, FLOAT32),
            launch=job.settings.get(LAUNCH, ""),
        )

    def checks(self) -> tuple[int, ...]:
        """Returns the seeds of the inputs that a build must compute right."""
        return tuple(derived(self._seed, "check", n) for n in range(_CHECKS))

    def samples(self, job: BuildJob) -> tuple[int, ...]:
        """Returns the seeds of the inputs that tell the error of a build in other numbers."""
        return error_seeds(job.samples)

    def export(self, job: BuildJob) -> ExportDatabase:
        return ExportDatabase(
            model=_file(job.model),
            target=job.model.target,
            records=_records(job),
            directory=str(job.directory.resolve()),
            scratch=self._fresh(),
        )

    def import_schedules(
        self, job: ModelJob, foreign: Sequence[ForeignSchedule]
    ) -> ImportSchedules:
        return ImportSchedules(
            model=_file(job), target=job.target, foreign=tuple(foreign), scratch=self._fresh()
        )

    def _fresh(self) -> str:
        self._count += 1
        directory = self._scratch / f"compile-{self._count}"
        directory.mkdir(parents=True, exist_ok=True)
        return str(directory.resolve())


def _file(job: ModelJob) -> ModelFile:
    return ModelFile(file=str(job.file.resolve()), path=job.path, shapes=dict(job.shapes))


def _records(job: BuildJob) -> dict[str, tuple[TuningRecord, ...]]:
    return {key.workload: tuple(found) for key, found in job.records.items()}
