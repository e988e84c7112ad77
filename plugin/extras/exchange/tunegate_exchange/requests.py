"""Requests to the child that converts schedules: one for each model, which it opens. No TVM
here."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar, cast

import msgspec

from tunegate.artifacts.tasks import Instruction
from tunegate.config import TargetConfig
from tunegate.ports import ModelJob
from tunegate.runtimes.tvm.compile_requests import CompileChildren, memory_for, model_file
from tunegate.runtimes.tvm.finished_build import CompileFailures
from tunegate.system.processes.conversations import Conversation
from tunegate.tune.protocol import Failed, ModelFile
from tunegate_cache.format.records import Decision, TuningRecord, WorkloadKey

_CHILD = "tunegate_exchange.conversion"
_MAX_SECONDS = 900.0

# Schedules of other people's databases: proposals until they replay on our own modules.


class ForeignSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """`arguments` are (dtype, shape) of each buffer. `instructions` use the names of another
    module. The times are claims."""

    kind: Literal["llvm", "cuda"]
    arguments: tuple[tuple[str, tuple[int, ...]], ...]
    instructions: tuple[Instruction, ...]
    decisions: tuple[Decision, ...]
    run_nanoseconds: tuple[int, ...]

    @property
    def median_ms(self) -> float:
        return statistics.median(self.run_nanoseconds) / 1e6


class ImportedSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A foreign schedule as decisions under a template of our task `key`. `number` is its place in
    the given list."""

    number: int
    key: WorkloadKey
    template: str
    decisions: tuple[Decision, ...]


# Messages between the coordinator and the child.


class ExportDatabase(msgspec.Struct, frozen=True, tag="export", kw_only=True):
    """Append the best records that replay to a stock database in `directory`."""

    model: ModelFile
    target: TargetConfig
    records: dict[str, tuple[TuningRecord, ...]]
    directory: str
    scratch: str


class ImportSchedules(msgspec.Struct, frozen=True, tag="import", kw_only=True):
    """Find the foreign schedules that fit a template of one of the model's functions."""

    model: ModelFile
    target: TargetConfig
    foreign: tuple[ForeignSchedule, ...]
    scratch: str


class Exported(msgspec.Struct, frozen=True, tag="exported", kw_only=True):
    """The number of records in the stock database. `misfits` are labels of functions none of whose
    records replays."""

    written: int
    misfits: tuple[str, ...]


class Imported(msgspec.Struct, frozen=True, tag="imported"):
    schedules: tuple[ImportedSchedule, ...]


Request = ExportDatabase | ImportSchedules
Reply = Exported | Imported | Failed
_Wanted = TypeVar("_Wanted", Exported, Imported)


def export_database(
    job: ModelJob,
    records: Mapping[WorkloadKey, Sequence[TuningRecord]],
    directory: Path,
    scratch: Path,
) -> Exported:
    """Appends the best records of a model to a stock database in `directory`, which several may
    share. Raises ModelError."""
    request = ExportDatabase(
        model=model_file(job),
        target=job.target,
        records={key.workload: tuple(found) for key, found in records.items()},
        directory=str(directory.resolve()),
        scratch=_make_directory(scratch),
    )
    return _ask(job, request, Exported, scratch)


def import_schedules(
    jobs: Sequence[ModelJob], foreign: Sequence[ForeignSchedule], scratch: Path
) -> Sequence[ImportedSchedule]:
    """Returns the few fastest schedules, by their claims, that fit a task of these models exactly.
    Raises ModelError."""
    found: dict[WorkloadKey, list[ImportedSchedule]] = {}
    for job in jobs:
        request = ImportSchedules(
            model=model_file(job),
            target=job.target,
            foreign=tuple(foreign),
            scratch=_make_directory(scratch),
        )
        reply = _ask(job, request, Imported, scratch)
        for key in {schedule.key for schedule in reply.schedules}:
            found[key] = [s for s in reply.schedules if s.key == key]
    return [schedule for schedules in found.values() for schedule in schedules]


def _make_directory(scratch: Path) -> str:
    scratch.mkdir(parents=True, exist_ok=True)
    return str(scratch.resolve())


def _ask(job: ModelJob, request: Request, wanted: type[_Wanted], scratch: Path) -> _Wanted:
    """Returns the reply of a child of its own, which writes its log into `scratch`."""
    log = scratch / "conversion.log"
    children = CompileChildren(_CHILD, cast("type[Reply]", Reply), log, _MAX_SECONDS)
    shares = memory_for([job])
    talk = Conversation(children.begin(job, shares.memory), request)
    children.converse([job], [talk], shares, [False])
    reply = talk.replies[0] if talk.replies else None
    if not isinstance(reply, wanted):
        raise CompileFailures(log).of(job.path, talk.died or talk.replies[0])
    return reply
