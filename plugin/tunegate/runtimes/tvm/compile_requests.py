"""Requests to the compiler's children, each with a private directory of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tunegate.artifacts.candidates import FLOAT32, LAUNCH, PRECISION
from tunegate.artifacts.tasks import ForeignSchedule
from tunegate.compiler.build.check_messages import CheckArtifact, Checked, CheckReply, MendBuild
from tunegate.compiler.runtime_alone import BRIEF_WAITS, thread_variables
from tunegate.config import TargetConfig
from tunegate.models.inputs.calibration import error_seeds
from tunegate.ports import BuildJob, ModelJob
from tunegate.system.clock import derived
from tunegate.system.machine.cores import default_threads
from tunegate.system.nvidia.cuda_toolkit import cuda_variables
from tunegate.tune.compiler_protocol import (
    BuildModel,
    Built,
    CompileReply,
    ExportDatabase,
    ImportSchedules,
    ListTasks,
)
from tunegate.tune.protocol import ModelFile
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
            decided=job.decided,
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


# Requests to a child that has built a model: to check it, and to mend it if it is wrong.

MAX_MENDING_SECONDS = 180.0
"""The time in which the kernels that compute other numbers must be found."""


def questions_after_build(
    build: BuildModel,
    *,
    seeds: tuple[int, ...],
    samples: tuple[int, ...] = (),
    cases: str = "",
    limit_seconds: float,
) -> Callable[[CompileReply | CheckReply], CheckArtifact | MendBuild | None]:
    """Returns what makes the next question of a reply. Where there are `samples`, the build is run
    on the inputs of these seeds, to tell its error, in place of the check, and `cases` is where
    what it computes is kept. A child has `limit_seconds` for each: one that mends stops in time to
    say so."""
    checks: list[CheckArtifact] = []

    def ask(reply: CompileReply | CheckReply) -> CheckArtifact | MendBuild | None:
        match reply:
            case Built(reference=reference):
                check = CheckArtifact(
                    directory=build.directory,
                    reference=reference,
                    kind=build.target.kind,
                    seeds=seeds,
                    samples=samples,
                    cases=cases,
                )
                checks.append(check)
                return check
            case Checked(check=found) if found is not None and not found.passed:
                seconds = min(MAX_MENDING_SECONDS, limit_seconds / 2)
                return MendBuild(build=build, check=checks[0], limit_seconds=seconds)
            case _:
                return None

    return ask


# The variables of a process that builds for a target, and times what it has built.


def child_variables(target: TargetConfig) -> Mapping[str, str]:
    """TVM by itself would give kernels half of the machine's cores as threads, whatever the target
    has, and bind the first to the machine's first core, whatever we may use. They are timed in turn
    with ONNX Runtime, so they must not wait awake while that computes."""
    return {
        **(cuda_variables() if target.kind == "cuda" else {}),
        **thread_variables(target.threads or default_threads()),
        **BRIEF_WAITS,
    }
