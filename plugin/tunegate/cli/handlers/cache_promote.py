"""`tunegate cache promote`: what a pull request learned, for everybody, after it is measured
again."""

from __future__ import annotations

import msgspec

from tunegate import pipeline
from tunegate.artifacts.changes import ChangeSet
from tunegate.cli.commands.cache import PromoteOptions
from tunegate.cli.handlers.reporting import write_json
from tunegate.cli.handlers.table import show_revalidation
from tunegate.errors import PASS, UNFIT, ConfigError
from tunegate.models.export_models import export_models
from tunegate.project import Project, open_project
from tunegate.system.cache.shared_cache import SharedCache
from tunegate.system.output.directory import opened_output
from tunegate.tools import Tools
from tunegate.tune.revalidation import Challenge, Revalidated, challenges, revalidate
from tunegate.wiring import opened_tools
from tunegate_cache.format.names import zone_problem
from tunegate_cache.format.records import TuningRecord


class Promotions(msgspec.Struct, frozen=True, kw_only=True):
    """`published` is False where the records could not be delivered; they wait for the next run."""

    schema: int = 1
    from_zone: str
    zone: str
    published: bool
    tasks: tuple[Revalidated, ...]


def run(options: PromoteOptions) -> int:
    """Measures records for the tasks of the models at HEAD again, within
    `budget.minutes`. Raises ConfigError."""
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
        standing = _standing(project, changes, tools, options.from_zone)
        files = export_models(changes, tools.source).files
        results = revalidate(
            standing, files, tools.tuner, project.config.budget.minutes, tools.context.progress
        )
        winners = [
            _signed_off(record, options.from_zone) for _, record in results if record is not None
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


def _standing(
    project: Project, changes: ChangeSet, tools: Tools, from_zone: str
) -> tuple[Challenge, ...]:
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


def _signed_off(record: TuningRecord, from_zone: str) -> TuningRecord:
    source = msgspec.structs.replace(record.source, ref=f"promoted from {from_zone}")
    return msgspec.structs.replace(record, source=source)
