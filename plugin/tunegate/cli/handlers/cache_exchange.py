"""`tunegate cache pull`, `push`, `export`, `import` and `promote`: records on their way between
places. The first two copy them as they are; schedules of others are measured again here."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from tunegate import pipeline
from tunegate.artifacts.changes import ChangeSet
from tunegate.artifacts.tasks import ForeignSchedule, ImportedSchedule, TuningTask
from tunegate.cli.commands import cache
from tunegate.cli.handlers.cache_admin import answering, open_cache_admin
from tunegate.cli.handlers.reporting import write_json
from tunegate.cli.handlers.table import show_lines, show_revalidation, show_table
from tunegate.compiler.versions import toolchain
from tunegate.errors import PASS, UNFIT, ConfigError
from tunegate.models.export_models import ExportedModels, export_models
from tunegate.ports import BuildJob, Export, ModelJob
from tunegate.project import Project, open_project
from tunegate.settings import Settings
from tunegate.system.cache.shared_cache import SharedCache, undelivered_store
from tunegate.system.cache.stock_database import StockDatabase, read_database
from tunegate.system.output.directory import opened_output
from tunegate.tools import Tools
from tunegate.tune.revalidation import Challenge, Revalidated, challenges, revalidate
from tunegate.wiring import opened_tools
from tunegate.wording import plural
from tunegate_cache.format.names import zone_problem
from tunegate_cache.format.records import (
    DeviceFingerprint,
    ExactHit,
    Lookup,
    TuningRecord,
    WorkloadKey,
)
from tunegate_cache.maintenance.copying import Copied, pull, push
from tunegate_cache.stores.files import FileStore


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    source: str
    destination: str
    copied: Copied


def run_pull(options: cache.PullOptions) -> int:
    """Copies everything that a run would read into a directory store, which `cache.url` may
    name."""
    settings = options.settings
    admin = open_cache_admin(settings)
    with answering(admin.config):
        copied = Copied()
        for zone in dict.fromkeys((admin.config.zone, *admin.config.read_zones)):
            for group in admin.groups(zone):
                copied = copied.plus(
                    pull(admin.store, FileStore(options.directory), group, admin.keys)
                )
    return _finish(settings, admin.config.url, str(options.directory), copied)


def run_push(options: cache.PushOptions) -> int:
    """Pushes the records of a directory store, or without one those that earlier runs on this
    machine could not deliver."""
    settings, directory = options.settings, options.directory
    if directory is not None and not directory.is_dir():
        raise ConfigError(f"{directory}: no such directory. Name one that tunegate wrote.")
    admin = open_cache_admin(settings)
    waiting = undelivered_store(admin.config, root=admin.root)
    source = waiting if directory is None else FileStore(directory)
    with answering(admin.config):
        copied = push(
            source,
            admin.store,
            from_zone=admin.config.zone,
            zone=admin.config.zone,
            signer=admin.signer,
        )
    # What was delivered need not wait any longer. A directory store is the user's, and stays.
    if directory is None and not copied.problems:
        for name in source.names(f"ms1/z/{admin.config.zone}/"):
            source.delete(name)
    return _finish(settings, str(directory or "this machine"), admin.config.url, copied)


def _finish(settings: Settings, source: str, destination: str, copied: Copied) -> int:
    if settings.as_json:
        write_json(Copy(source=source, destination=destination, copied=copied))
    else:
        what = (
            f"{plural(copied.objects, 'object')}, {plural(copied.records, 'record')}, "
            f"{plural(copied.size_bytes, 'byte')}"
        )
        show_lines([f"{what}: {source} to {destination}", *copied.problems])
    return UNFIT if copied.problems else PASS


# `tunegate cache export DIR`: the cache's schedules for the models at HEAD, for plain TVM.


class ModelExport(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    target: str
    written: int
    misfits: tuple[str, ...]


class Exports(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    directory: str
    models: tuple[ModelExport, ...]


def export(options: cache.ExportOptions) -> int:
    """Writes one database per target, in a folder of its name. Raises ConfigError if a folder
    already holds a database."""
    settings = options.settings
    project = open_project(settings)
    for target in project.config.targets:
        if (options.directory / target.name / "database_workload.json").exists():
            taken = options.directory / target.name
            raise ConfigError(f"{taken}: holds a database already. Name another directory.")
    changes = project.all_models()
    with (
        opened_output(settings.out, "cache export") as out,
        opened_tools(settings, project.checkout(), out) as tools,
    ):
        exports = _exports(changes, tools, options.directory)
    if settings.as_json:
        write_json(Exports(directory=str(options.directory), models=exports))
    else:
        _show_exports(options.directory, exports)
    return PASS


def _exports(changes: ChangeSet, tools: Tools, directory: Path) -> tuple[ModelExport, ...]:
    # The records of the models' tasks. The answer of a trusted zone replaces the run's own.
    tasks = pipeline.extracted(tools, changes).tasks
    asked = [(task.key, task.shape) for task in tasks]
    trusted = tools.index.lookup(asked)
    answers = [*tools.index.claims(asked).items(), *trusted.items()]
    records = {key: hit.records for key, hit in answers if isinstance(hit, ExactHit)}

    # The compiler replays them on each model's own modules, and writes what fits.
    models = export_models(changes, tools.source)
    named = {target.name: target for target in tools.config.targets}
    wanted = [(change, named[name]) for change in changes.models for name in change.targets]
    jobs = [
        BuildJob(
            model=models.job(change.path, "head", target),
            records=records,
            sources={},
            directory=directory / target.name,
        )
        for change, target in wanted
    ]
    exported: Sequence[Export] = tools.compiler.export(jobs)
    return tuple(
        ModelExport(
            model=change.path, target=target.name, written=done.written, misfits=done.misfits
        )
        for (change, target), done in zip(wanted, exported, strict=True)
    )


def _show_exports(directory: Path, exports: Sequence[ModelExport]) -> None:
    show_table(
        str(directory),
        ("model", "target", "records", "records that do not fit"),
        ((e.model, e.target, e.written, ", ".join(e.misfits)) for e in exports),
    )
    show_lines(
        [
            "open with tvm.s_tir.meta_schedule.database.JSONDatabase(work_dir=DIR/<target>)",
            (
                "for targets with layout nhwc (the default on CPUs) "
                "convert the module before legalizing: "
                'relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "HWIO"]})'
            ),
        ]
    )


# `tunegate cache import DIR`: schedules from a stock MetaSchedule database, measured again. Its
# files are data of unknown origin. What fits a template of our own tasks is measured here like
# another zone's record; only winners become records, and those are ours.

_ELSEWHERE = DeviceFingerprint(name="", kind="cpu", units=0, memory_bytes=0)
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


def import_records(options: cache.ImportOptions) -> int:
    """Measures the database's records again for the tasks of the models at HEAD, within
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
        imported, standing = _challenges(changes, tools, models, database)
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
        _show_imports(found)
    return PASS if published else UNFIT


def _challenges(
    changes: ChangeSet, tools: Tools, models: ExportedModels, database: StockDatabase
) -> tuple[Sequence[ImportedSchedule], tuple[Challenge, ...]]:
    # What replays on our own modules challenges what the cache has. Its times are claims, which
    # only order the challenges.
    tasks = pipeline.extracted(tools, changes).tasks
    imported = tools.compiler.import_schedules(_jobs(changes, models), database.schedules)
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


def _show_imports(found: Imports) -> None:
    show_revalidation(f"{found.directory} to {found.zone}", found.tasks)
    refused = "".join(f", {count} refused ({why})" for why, count in found.refused.items())
    show_lines(
        [f"{plural(found.read, 'record')} read{refused}; {found.fitting} of the fastest fit a task"]
    )


# `tunegate cache promote`: a pull request's records for everybody, after measuring them again.


class Promotions(msgspec.Struct, frozen=True, kw_only=True):
    """`published` is False if the records could not be delivered; they wait for the next run."""

    schema: int = 1
    from_zone: str
    zone: str
    published: bool
    tasks: tuple[Revalidated, ...]


def promote(options: cache.PromoteOptions) -> int:
    """Measures a zone's records again for the tasks of the models at HEAD, within `budget.minutes`.
    Raises ConfigError."""
    settings = options.settings
    problem = zone_problem(options.from_zone)
    project = open_project(settings)
    if problem is not None:
        raise ConfigError(f"--from-zone: {problem}.")
    if options.from_zone == project.config.cache.zone:
        raise ConfigError(
            f"--from-zone: {options.from_zone} is the zone to promote to. Name another."
        )
    changes = project.all_models()
    with (
        opened_output(settings.out, "cache promote") as out,
        opened_tools(settings, project.checkout(), out) as tools,
    ):
        standing = _challenges_of_zone(project, changes, tools, options.from_zone)
        files = export_models(changes, tools.source).files
        results = revalidate(
            standing, files, tools.tuner, project.config.budget.minutes, tools.context.progress
        )
        winners = [
            _mark_promoted(record, options.from_zone) for _, record in results if record is not None
        ]
        published = tools.index.publish(winners)
    found = Promotions(
        from_zone=options.from_zone,
        zone=project.config.cache.zone,
        published=published,
        tasks=tuple(result for result, _ in results),
    )
    if settings.as_json:
        write_json(found)
    else:
        show_revalidation(f"{found.from_zone} to {found.zone}", found.tasks)
    return PASS if published else UNFIT


def _challenges_of_zone(
    project: Project, changes: ChangeSet, tools: Tools, from_zone: str
) -> tuple[Challenge, ...]:
    # The other zone is read as if it were this run's own, by a cache that writes nothing.
    tasks = pipeline.extracted(tools, changes).tasks
    wanted = [(task.key, task.shape) for task in tasks]
    theirs = SharedCache(
        msgspec.structs.replace(
            project.config.cache, zone=from_zone, read_zones=(from_zone,), mode="ro"
        ),
        state=tools.source.workdir / "promotion",
        root=project.repository.root,
        device=tools.context.device.fingerprint(),
    )
    return challenges(tasks, theirs.lookup(wanted), tools.index.lookup(wanted))


def _mark_promoted(record: TuningRecord, from_zone: str) -> TuningRecord:
    source = msgspec.structs.replace(record.source, ref=f"promoted from {from_zone}")
    return msgspec.structs.replace(record, source=source)
