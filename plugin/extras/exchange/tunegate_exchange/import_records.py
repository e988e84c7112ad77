"""`tunegate cache import DIR`: schedules from a stock MetaSchedule database, measured again.

Its files are data of unknown origin. What fits a template of our own tasks is measured here like
another zone's record; only winners become records, and those are ours.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tunegate import pipeline
from tunegate.artifacts.changes import ChangeSet
from tunegate.artifacts.tasks import TuningTask
from tunegate.cli.handlers.reporting import write_json
from tunegate.cli.handlers.table import show_lines, show_revalidation
from tunegate.compiler.versions import toolchain
from tunegate.errors import PASS, UNFIT
from tunegate.models.export_models import ExportedModels, export_models
from tunegate.ports import ModelJob
from tunegate.project import open_project
from tunegate.system.cache.shared_cache import require_signing
from tunegate.system.output.directory import opened_output
from tunegate.tools import Tools
from tunegate.tune.revalidation import Challenge, Revalidated, challenges, revalidate
from tunegate.wiring import opened_tools
from tunegate.wording import plural
from tunegate_cache.format import records
from tunegate_exchange.commands import ImportOptions
from tunegate_exchange.requests import ForeignSchedule, ImportedSchedule, import_schedules
from tunegate_exchange.stock_database import StockDatabase, read_database

_ELSEWHERE = records.DeviceFingerprint(name="", kind="cpu", units=0, memory_bytes=0)
"""The device of a stock database's times, which it does not say."""


class Imports(msgspec.Struct, frozen=True, kw_only=True):
    """`read` counts the database's records, `refused` those that are no schedules, by reason;
    `fitting` is how many of the fastest fit a task of ours. `published` is False if the records
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
    """Measures the database's records again for the tasks of the models at HEAD, within the budget.
    Raises ConfigError."""
    settings = options.settings
    project = open_project(settings)
    database = read_database(options.directory)
    require_signing(project.config.cache)
    changes = project.all_models()
    with (
        opened_output(settings.out, "cache import") as out,
        opened_tools(settings, project.checkout(), out) as tools,
    ):
        models = export_models(changes, tools.source)
        imported, standing = _challenges(changes, tools, models, database)
        results, published = revalidate(
            standing,
            models.files,
            tools.tuner,
            project.config,
            context=tools.context,
            publish=lambda winners: tools.index.publish([*map(_signed_off, winners)]),
        )
    found = Imports(
        directory=str(options.directory),
        zone=project.config.cache.zone,
        read=database.read,
        refused=database.refused,
        fitting=len({schedule.number for schedule in imported}),
        published=published,
        tasks=results,
    )
    if settings.as_json:
        write_json(found)
    else:
        _show_imports(found)
    return PASS if published else UNFIT


def _challenges(
    changes: ChangeSet, tools: Tools, models: ExportedModels, database: StockDatabase
) -> tuple[Sequence[ImportedSchedule], tuple[Challenge, ...]]:
    # What replays on our own modules challenges what the cache has. Its times are claims, which
    # only order the challenges.
    tasks = pipeline.extract_tasks(tools, changes).tasks
    imported = import_schedules(
        _jobs(changes, models), database.schedules, tools.source.workdir / "exchange"
    )
    known = tools.index.lookup([(task.key, task.shape) for task in tasks])
    theirs = _hits_of_imported(tasks, imported, database.schedules)
    return imported, challenges(tasks, theirs, known)


def _jobs(changes: ChangeSet, models: ExportedModels) -> list[ModelJob]:
    targets = {target.name: target for target in models.config.targets}
    return [
        models.job(change.path, "head", targets[name])
        for change in changes.models
        for name in change.targets
    ]


def _hits_of_imported(
    tasks: Iterable[TuningTask],
    imported: Iterable[ImportedSchedule],
    foreign: Sequence[ForeignSchedule],
) -> Mapping[records.WorkloadKey, records.Lookup]:
    shapes = {task.key: task.shape for task in tasks}
    found: dict[records.WorkloadKey, list[records.TuningRecord]] = {}
    for schedule in imported:
        record = records.TuningRecord(
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
        found.setdefault(schedule.key, []).append(record)
    return {key: records.ExactHit(records=tuple(same)) for key, same in found.items()}


def _signed_off(record: records.TuningRecord) -> records.TuningRecord:
    return msgspec.structs.replace(
        record, source=msgspec.structs.replace(record.source, run="import")
    )


def _show_imports(found: Imports) -> None:
    show_revalidation(f"{found.directory} to {found.zone}", found.tasks)
    refused = "".join(f", {count} refused ({why})" for why, count in found.refused.items())
    show_lines(
        [f"{plural(found.read, 'record')} read{refused}; {found.fitting} of the fastest fit a task"]
    )
