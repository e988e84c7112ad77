"""`tunegate cache import DIR`: what a stock MetaSchedule database knows, after it is measured
again.

Its files are data of unknown origin. What fits a template of our own tasks is measured here like a
record of another zone; only what wins becomes a record, and that is one of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tunegate import pipeline
from tunegate.artifacts.changes import ChangeSet
from tunegate.artifacts.foreign_schedules import ForeignSchedule, ImportedSchedule
from tunegate.artifacts.tasks import TuningTask
from tunegate.cli.commands.cache.import_records import ImportOptions
from tunegate.commands.revalidation_table import show_revalidation
from tunegate.commands.standard_output import write_json
from tunegate.commands.table import show_lines
from tunegate.edges.cache.stock_database import StockDatabase, read_database
from tunegate.edges.metaschedule.versions import toolchain
from tunegate.edges.output.directory import opened_output
from tunegate.errors import PASS, UNFIT
from tunegate.plurals import plural
from tunegate.ports import ModelJob
from tunegate.project import open_project
from tunegate.revalidation.challenges import Challenge, Revalidated, challenges
from tunegate.revalidation.revalidate import revalidate
from tunegate.sides.export_models import ExportedModels, export_models
from tunegate.tools import Tools
from tunegate.wiring import opened_tools
from tunegate_cache.format.records import (
    DeviceFingerprint,
    ExactHit,
    Lookup,
    TuningRecord,
    WorkloadKey,
)

_ELSEWHERE = DeviceFingerprint(name="", kind="cpu", units=0, memory_bytes=0)
"""A stock database does not say where its times were taken."""


class Imports(msgspec.Struct, frozen=True, kw_only=True):
    """`read` counts the database's records, `refused` those that are no schedules, by reason;
    `fitting` is how many of the fastest fit a task of ours. `published` is False where the records
    could not be delivered; they wait for the next run."""

    schema: int = 1
    directory: str
    zone: str
    read: int
    refused: dict[str, int]
    fitting: int
    published: bool
    tasks: tuple[Revalidated, ...]


def run(options: ImportOptions) -> int:
    """Measures records for the tasks of the models at HEAD again, within
    `budget.minutes`. Raises ConfigError."""
    settings = options.settings
    project = open_project(settings)
    database = read_database(options.directory)
    changes = project.all_models()
    with (
        opened_output(settings.out, "cache import") as out,
        opened_tools(settings, project.checkout(), out) as tools,
    ):
        models = export_models(changes, tools.source)
        imported, standing = _standing(changes, tools, models, database)
        results = revalidate(
            standing,
            models.files,
            tools.tuner,
            project.config.budget.minutes,
            tools.context.progress,
        )
        winners = [_signed_off(record) for _, record in results if record is not None]
        published = tools.index.publish(winners)
    found = Imports(
        directory=str(options.directory),
        zone=project.config.cache.zone,
        read=database.read,
        refused=database.refused,
        fitting=len({schedule.number for schedule in imported}),
        published=published,
        tasks=tuple(result for result, _ in results),
    )
    if settings.as_json:
        write_json(found)
    else:
        _show(found)
    return PASS if published else UNFIT


def _standing(
    changes: ChangeSet, tools: Tools, models: ExportedModels, database: StockDatabase
) -> tuple[Sequence[ImportedSchedule], tuple[Challenge, ...]]:
    tasks = pipeline.extracted(tools, changes).tasks
    imported = tools.compiler.import_schedules(_jobs(changes, models), database.schedules)
    known = tools.index.lookup([(task.key, task.shape) for task in tasks])
    theirs = _as_hits(tasks, imported, database.schedules)
    return imported, challenges(tasks, theirs, known)


def _jobs(changes: ChangeSet, models: ExportedModels) -> list[ModelJob]:
    targets = {target.name: target for target in models.config.targets}
    return [
        models.job(change.path, "head", targets[name])
        for change in changes.models
        for name in change.targets
    ]


def _as_hits(
    tasks: Iterable[TuningTask],
    imported: Iterable[ImportedSchedule],
    foreign: Sequence[ForeignSchedule],
) -> Mapping[WorkloadKey, Lookup]:
    shapes = {task.key: task.shape for task in tasks}
    records: dict[WorkloadKey, list[TuningRecord]] = {}
    for schedule in imported:
        record = TuningRecord(
            key=schedule.key,
            shape=shapes[schedule.key],
            template=schedule.template,
            decisions=schedule.decisions,
            run_nanoseconds=foreign[schedule.number].run_nanoseconds,
            status="ok",
            device=_ELSEWHERE,
            toolchain=toolchain(),
            measured_at=0,
        )
        records.setdefault(schedule.key, []).append(record)
    return {key: ExactHit(records=tuple(found)) for key, found in records.items()}


def _signed_off(record: TuningRecord) -> TuningRecord:
    return msgspec.structs.replace(
        record, source=msgspec.structs.replace(record.source, run="import")
    )


def _show(found: Imports) -> None:
    show_revalidation(f"{found.directory} to {found.zone}", found.tasks)
    refused = "".join(f", {count} refused ({why})" for why, count in found.refused.items())
    show_lines(
        [f"{plural(found.read, 'record')} read{refused}; {found.fitting} of the fastest fit a task"]
    )
