"""`tunegate warm`: all configured models tuned for the cache, where nothing is compared."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from tunegate import artifact_io, pipeline
from tunegate.artifacts.changes import ChangeSet, ModelPath
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.warmed import Warmed, WarmedModel
from tunegate.cli.commands.warm import WarmOptions
from tunegate.commands.remembering import remember_warming
from tunegate.commands.standard_output import write_json
from tunegate.commands.table import show_lines, show_table
from tunegate.config import CacheConfig
from tunegate.edges.output.directory import opened_output
from tunegate.errors import PASS, UNFIT, ConfigError
from tunegate.plurals import plural
from tunegate.project import Project, open_project
from tunegate.render.stopped import tuning_ended
from tunegate.render.units import duration, money
from tunegate.runtimes.requirements import require_installed
from tunegate.sides.chosen_models import chosen_models
from tunegate.sides.elections import KnownElections, publish_elections
from tunegate.sides.far_behind import KnownStandings, publish_standings
from tunegate.stages.resolve import resolve
from tunegate.stages.try_builds import plan_of_built
from tunegate.tools import Tools
from tunegate.tuning.standing.skipped_tasks import nobody
from tunegate.tuning.tally import tally
from tunegate.tuning.warmed import known_after, warmed_models
from tunegate.wiring import opened_tools
from tunegate_cache.format.records import WorkloadKey


def run(options: WarmOptions) -> int:
    """Writes warm.json. Raises ConfigError for a glob that matches no configured model, and for a
    cache that may not be written."""
    settings = options.settings
    project = open_project(settings)
    _require_writing(project.config.cache)
    with opened_output(settings.out, "warm") as out:
        changes = chosen_models(project.all_models(), options.models)
        out.forget(since="plan")
        require_installed(project.config, "tune")
        with opened_tools(settings, project.checkout(), out) as tools:
            warmed = _warmed(tools, changes, project, again=options.again)
    if settings.as_json:
        write_json(warmed)
    else:
        _show(warmed)
    return PASS if warmed.is_published else UNFIT


def _warmed(tools: Tools, changes: ChangeSet, project: Project, *, again: bool) -> Warmed:
    """Tunes all of these models, and elects what they ship with; `again` also those that stay far
    behind another runtime, and those whose election is remembered. Raises CancelledError: what was
    finished is in the cache."""
    tasks = pipeline.extracted(tools, changes)
    standings = KnownStandings(tools.index, tools.origin, tools.source.candidates)
    behind = nobody if again else standings
    resolution = resolve(tasks, tools.index, tools.config, behind)
    tasks, planned = plan_of_built(tools, tasks, resolution)
    outcomes = [pipeline.tune_shard(tools, planned, shard) for shard in planned.shards]
    resolved = planned.resolution.tasks
    known = known_after(resolved, outcomes)
    left = _unfinished(planned, outcomes, known) | _unelected(tools, planned, outcomes, again=again)
    _build(tools, planned, outcomes, left)
    device, cache = tools.context.device, project.config.cache
    remember_warming(planned, outcomes, device, cache, project.repository)
    told = [note for outcome in outcomes for note in outcome.notes]
    use = tools.index.use()
    warmed = Warmed(
        zone=use.zone,
        models=warmed_models(resolved, known),
        left=sum(task.task.key not in known and not task.skipped for task in resolved),
        is_published=not any(outcome.unpublished for outcome in outcomes),
        tuning=tally(planned, outcomes),
        notes=tuple(dict.fromkeys((*tasks.notes, *planned.notes, *told, *use.notes))),
    )
    artifact_io.write(tools.context.out / "warm.json", warmed)
    return warmed


def _unfinished(
    planned: TuningPlan, outcomes: Sequence[TuningOutcome], known: Collection[WorkloadKey]
) -> set[ModelPath]:
    """The models that were tuned and not finished: whether more tuning pays is seen in a build."""
    if not any(task.trials for outcome in outcomes for task in outcome.tasks):
        return set()
    left = [task.task for task in planned.resolution.tasks if task.task.key not in known]
    return {use.model for task in left for use in task.uses}


def _unelected(
    tools: Tools, planned: TuningPlan, outcomes: Sequence[TuningOutcome], *, again: bool
) -> set[ModelPath]:
    """The models that have a choice on a target, and of which no election is remembered."""
    candidates = tools.source.candidates
    remembered = () if again else KnownElections(tools)(planned, outcomes)
    known = {(each.model, each.target) for each in remembered}
    return {
        change.path
        for change in planned.changes.models
        for target in change.targets
        if len(candidates[target]) > 1 and (change.path, target) not in known
    }


def _build(
    tools: Tools,
    planned: TuningPlan,
    outcomes: Sequence[TuningOutcome],
    paths: Collection[ModelPath],
) -> None:
    """Builds and times these models under each candidate, for the cache to know."""
    models = tuple(change for change in planned.changes.models if change.path in paths)
    if not models:
        return
    changes = msgspec.structs.replace(planned.changes, models=models)
    left = msgspec.structs.replace(planned, changes=changes)
    builds = pipeline.built(tools, left, outcomes)
    publish_standings(tools, planned, outcomes, builds)
    publish_elections(tools, left, outcomes, builds)


def _require_writing(cache: CacheConfig) -> None:
    if cache.mode != "rw":
        message = f"cache.mode: {cache.mode} keeps nothing of what warm learns. Set it to rw."
        raise ConfigError(message)


def _show(warmed: Warmed) -> None:
    columns = ("model", "target", "tasks", "tuned before", "tuned now", "untuned")
    show_table(f"zone {warmed.zone}", columns, map(_row, warmed.models))
    show_lines(_told(warmed))


def _row(model: WarmedModel) -> tuple[object, ...]:
    now, left = model.known - model.known_before, model.tasks - model.known
    return model.model, model.target, model.tasks, model.known_before, now, left


def _told(warmed: Warmed) -> Iterator[str]:
    tuning = warmed.tuning
    cost = "" if tuning.usd is None else f", {money(tuning.usd)}"
    yield (
        f"{plural(tuning.trials, 'trial')} in {duration(tuning.seconds)}{cost}; "
        f"{tuning_ended(tuning)}"
    )
    if warmed.left:
        yield f"{plural(warmed.left, 'task')} left: tunegate warm goes on from there"
    yield from (f"note: {note}" for note in warmed.notes)
