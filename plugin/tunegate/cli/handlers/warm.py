"""`tunegate warm`: tunes all configured models for the cache, without a comparison."""

from collections.abc import Collection, Iterator, Sequence

import msgspec

from tunegate import pipeline
from tunegate.artifacts import artifact_io
from tunegate.artifacts.builds import CellBuilds
from tunegate.artifacts.candidates import CandidateBuild, RememberedElection
from tunegate.artifacts.changes import ChangeSet, ModelPath
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import TaskSet
from tunegate.artifacts.verdicts import Warmed, WarmedModel, WarmedShipping
from tunegate.cli.commands.gating import WarmOptions
from tunegate.cli.handlers import run_history
from tunegate.cli.handlers.reporting import write_json
from tunegate.cli.handlers.table import show_lines, show_table
from tunegate.config import CacheConfig, Config
from tunegate.decide.advice import LIMIT_KEYS
from tunegate.errors import PASS, UNFIT, USAGE, ConfigError, EnvironmentUnfitError
from tunegate.measure.remembered_elections import KnownElections, publish_elections
from tunegate.plan.far_behind import KnownStandings, publish_standings
from tunegate.plan.resolve import resolve
from tunegate.plan.run_forecast import warm_forecast
from tunegate.plan.task_lists import KnownLists
from tunegate.plan.try_builds import plan_of_built
from tunegate.project import Project, open_project
from tunegate.report.history import Shipped, of_builds, of_elected
from tunegate.report.sentences import shipping_in_words, tuning_words
from tunegate.review.globs import chosen_models
from tunegate.runtimes.requirements import require_installed
from tunegate.system.cache.shared_cache import require_signing
from tunegate.system.cache.snapshot_pins import PINS_FILE, own_pins
from tunegate.system.output.directory import opened_output
from tunegate.tools import Tools
from tunegate.tune.expected_time import nobody
from tunegate.tune.model_keys import ModelOnTarget
from tunegate.tune.outcomes import known_after, shippings, tally, warmed_models
from tunegate.wiring import opened_tools
from tunegate.wording import plural

_PINNED = f"{PINS_FILE} pins snapshots: runs read what is tuned now after tunegate cache pin"


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
            for note in project.uncommitted_lines_here():
                tools.context.progress.warn(note)
            result, warnings = _tune_and_elect(tools, changes, project, again=options.again)
    if settings.as_json:
        write_json(result)
    else:
        _show(result, warnings)
    return exit_code(result)


def exit_code(result: Warmed) -> int:
    """Returns the exit code: that of `run` for a model that cannot be built."""
    if any(each.reason for each in result.ships):
        return USAGE
    return PASS if result.is_published else UNFIT


def _tune_and_elect(
    tools: Tools, changes: ChangeSet, project: Project, *, again: bool
) -> tuple[Warmed, frozenset[str]]:
    """Tunes these models, and elects what they ship with; `again` includes models far behind
    another runtime, and those with a remembered election. Returns the result, and the notes that
    were shown as warnings. Raises CancelledError: what was finished is in the cache."""
    config, repository, context = project.config, project.repository, tools.context
    # The work, remembered by the history wherever it ends: plan, tune, elect what ships.
    with run_history.remembered_before_plan(
        changes, context=context, config=config, repository=repository
    ) as began:
        tasks, plan = _plan(tools, changes, again=again)
    with run_history.remembered_without_end(
        plan, context=context, config=config, repository=repository, began=began
    ):
        _tell_plan(tools, plan, again=again)
        outcomes = [pipeline.tune_shard(tools, plan, shard) for shard in plan.shards]
        shipped_tasks, ships = _build_for_shipping(tools, plan, outcomes, again=again)
    run_history.remember_warming(
        plan,
        outcomes,
        shipped_tasks,
        work_seconds=run_history.seconds_besides_tuning(began, outcomes),
        device=context.device,
        config=config,
        repository=repository,
    )
    lookups = plan.resolution.tasks
    known_keys = known_after(lookups, outcomes)
    notes = [note for outcome in outcomes for note in outcome.notes]
    use = tools.index.use()
    pinned = [_PINNED] if own_pins(repository) else []
    result = Warmed(
        zone=use.zone,
        models=warmed_models(lookups, outcomes),
        left=sum(task.task.key not in known_keys and not task.skipped for task in lookups),
        is_published=not any(outcome.unpublished for outcome in outcomes),
        tuning=tally(plan, outcomes),
        notes=tuple(dict.fromkeys((*tasks.notes, *plan.notes, *notes, *use.notes, *pinned))),
        ships=ships,
    )
    artifact_io.write(context.out / "warm.json", result)
    return result, frozenset(tasks.notes) - frozenset(plan.notes)


def _plan(tools: Tools, changes: ChangeSet, *, again: bool) -> tuple[TaskSet, TuningPlan]:
    tasks = pipeline.extract_tasks(tools, changes, KnownLists(tools, are_believed=False).list_tasks)
    standings = KnownStandings(tools.index, tools.origin, tools.source.candidates)
    resolution = resolve(tasks, tools.index, tools.config, nobody if again else standings)
    return plan_of_built(tools, tasks, resolution)


def _tell_plan(tools: Tools, plan: TuningPlan, *, again: bool) -> None:
    """Announces the steps to come and their expected time, if there are any."""
    winners = _known_winners(tools, plan, () if again else KnownElections(tools)(plan, ()))
    candidates, origin = tools.source.candidates, tools.origin
    steps = warm_forecast(plan, tools.config, candidates, origin, winners)
    if steps:
        tools.context.progress.expect(steps)


def _build_for_shipping(
    tools: Tools, plan: TuningPlan, outcomes: Sequence[TuningOutcome], *, again: bool
) -> tuple[Shipped, tuple[WarmedShipping, ...]]:
    """Builds what is needed for the cache to know what ships. Returns the tasks of all models that
    ship compiled, by an election now or earlier, and what each model ships with."""
    elections = () if again else KnownElections(tools)(plan, outcomes)
    winners = _known_winners(tools, plan, elections)
    going_on = tuple(election for election in elections if election.is_cut_short)
    plan = msgspec.structs.replace(plan, elections=going_on)
    places = [(model.path, target) for model in plan.changes.models for target in model.targets]
    models_to_build = _unfinished_models(plan, outcomes) | {
        model for model, _ in set(places) - winners.keys()
    }
    builds = _build(tools, plan, outcomes, models_to_build)
    tuned_models = {where for where, winner in winners.items() if winner.is_tuned}
    shipped_tasks = {*of_builds(builds), *of_elected(plan.resolution.tasks, tuned_models)}
    known_places = {(election.model, election.target) for election in elections}
    return shipped_tasks, shippings(places, builds, winners, known_places)


def _known_winners(
    tools: Tools, plan: TuningPlan, elections: Sequence[RememberedElection]
) -> dict[ModelOnTarget, CandidateBuild]:
    """Returns what models ship with, by remembered elections or for lack of a choice. An election
    that was cut short goes on."""
    candidates = tools.source.candidates
    alone = {
        (change.path, target): candidates[target][0]
        for change in plan.changes.models
        for target in change.targets
        if len(candidates[target]) == 1
    }
    return alone | {
        (election.model, election.target): winner
        for election in elections
        if not election.is_cut_short
        for winner in candidates[election.target]
        if winner.name == election.winner
    }


def _unfinished_models(plan: TuningPlan, outcomes: Sequence[TuningOutcome]) -> set[ModelPath]:
    """Returns the models that were tuned but not finished: a build shows whether more tuning
    pays."""
    if not any(task.trials for outcome in outcomes for task in outcome.tasks):
        return set()
    lookups = plan.resolution.tasks
    known_keys = known_after(lookups, outcomes)
    unknown_tasks = [task.task for task in lookups if task.task.key not in known_keys]
    return {use.model for task in unknown_tasks for use in task.uses}


def _build(
    tools: Tools,
    plan: TuningPlan,
    outcomes: Sequence[TuningOutcome],
    paths: Collection[ModelPath],
) -> Sequence[CellBuilds]:
    """Builds and times these models under each candidate, for the cache to know."""
    models = tuple(change for change in plan.changes.models if change.path in paths)
    if not models:
        return ()
    changes = msgspec.structs.replace(plan.changes, models=models)
    part = msgspec.structs.replace(plan, changes=changes)
    builds = pipeline.build_sides(tools, part, outcomes)
    _require_checked(builds, tools.config)
    publish_standings(tools, plan, outcomes, builds)
    publish_elections(tools, part, outcomes, builds)
    return builds


def _require_checked(builds: Sequence[CellBuilds], config: Config) -> None:
    """Raises EnvironmentUnfitError for a GPU build that was never run: its build processes had no
    CUDA device."""
    gpus = {target.name for target in config.targets if target.kind == "cuda"}
    for sides in builds:
        head, cell = sides.head, sides.cell
        if head is None or head.error is not None or cell.target not in gpus:
            continue
        if head.tasks and head.check is None:
            message = (
                f"{cell.model} on {cell.target}: nobody has run its build, since CUDA finds no "
                "device on this machine. Run tunegate doctor here, or warm on the GPU runner."
            )
            raise EnvironmentUnfitError(message)


def _require_writing(cache: CacheConfig) -> None:
    if cache.mode != "rw":
        message = f"cache.mode: {cache.mode} keeps nothing of what warm learns. Set it to rw."
        raise ConfigError(message)
    require_signing(cache)


def _show(result: Warmed, warnings: Collection[str]) -> None:
    counts = ("known before", "tuned now", "measured once")
    columns = ("model", "target", "tasks", *counts, "not tuned")
    if result.models:
        show_table(f"zone {result.zone}", columns, map(_row, result.models))
    show_lines(note_lines(result, warnings))


def _row(model: WarmedModel) -> tuple[object, ...]:
    now = model.known - model.known_before - model.measured
    counts = (model.tasks, model.known_before, now, model.measured, model.tasks - model.known)
    return model.model, model.target, *counts


def note_lines(result: Warmed, warnings: Collection[str]) -> Iterator[str]:
    """Yields the lines below the table, without notes that `warnings` have shown."""
    yield from map(shipping_in_words, result.ships)
    yield f"Tuning: {tuning_words(result.tuning)}."
    if sum(model.tasks for model in result.models) > result.tuning.tasks:
        yield "A task of several models has a part in the row of each, and counts once here."
    if result.left:
        tasks_left_text = plural(result.left, "task is", "tasks are")
        yield f"{tasks_left_text} left: {_advice_on_rest(result)}."
    yield from (f"note: {note}" for note in result.notes if note not in warnings)


def _advice_on_rest(result: Warmed) -> str:
    if result.tuning.stopped in LIMIT_KEYS or result.tuning.stopped == "cancelled":
        return "run tunegate warm again, which goes on from there"
    return "more tuning promises too little there, and tunegate warm would leave them again"
