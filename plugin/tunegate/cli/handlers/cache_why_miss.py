"""`tunegate cache why-miss TASK`: the first key that differs, and the nearest neighbour."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tunegate.artifacts import artifact_io
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import ResolvedTask, TuningTask
from tunegate.cli.commands.cache import WhyMissOptions
from tunegate.cli.handlers.cache_admin import answering, open_cache_admin
from tunegate.cli.handlers.reporting import write_json
from tunegate.cli.handlers.table import show_lines
from tunegate.errors import PASS, ArtifactError, ConfigError
from tunegate.system.output.owned_directory import writer_at_work
from tunegate.tune.claims import is_resumed
from tunegate_cache.format.names import group_of
from tunegate_cache.format.records import Miss
from tunegate_cache.format.target_key import neighbours
from tunegate_cache.maintenance.explanation import Explanation, explain, read_group

_SHOWN = 8


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """The explanation of a miss: `at_look_up` is the last run's answer, `now` the cache's present
    one, without the zones that are `unread`."""

    schema: int = 1
    task: str
    workload: str
    target: str
    at_look_up: str
    now: Explanation
    unread: tuple[str, ...] = ()


def run(options: WhyMissOptions) -> int:
    """Explains a miss of the last plan. `task` is a layer's name, optionally with its model, or the
    beginning of a workload digest."""
    settings = options.settings
    plan = _last_plan(settings.out)
    entry, name = _find(plan.resolution.tasks, options.task)
    admin = open_cache_admin(settings)
    read_zones = admin.config.read_zones
    own = () if admin.config.zone in read_zones else (admin.config.zone,)
    about = entry.task.key, entry.task.shape
    with answering(admin.config):
        groups, unread = admin.of_each_group(
            None, lambda group: read_group(admin.store, group, admin.keys, about[0].workload)
        )
    now = _explain_by_size(explain(groups, read_zones, *about, own=own), entry.task.attributes)
    report = Explained(
        task=name,
        workload=entry.task.key.workload,
        target=entry.task.key.target,
        at_look_up=_answer(entry) + _claims_text(entry),
        now=now,
        unread=unread,
    )
    if settings.as_json:
        write_json(report)
    else:
        show_lines((*_lines(report, entry.task), *unread))
    return PASS


def _explain_by_size(now: Explanation, attributes: str) -> Explanation:
    """Returns the explanation; if the targets differ only in the runner's size, with that instead
    of their digests."""
    if now.differs != "target" or not attributes:
        return now
    differences = [
        neighbour
        for neighbour in neighbours(json.loads(attributes))
        if group_of("", neighbour.digest).target in now.targets
    ]
    if not differences:
        return now
    other_sizes = " and ".join(difference.there for difference in differences)
    detail = (
        f"recorded on runners of another size: {differences[0].name} {other_sizes} there, "
        f"{differences[0].here} here"
    )
    return msgspec.structs.replace(now, detail=detail)


def _last_plan(out: Path) -> TuningPlan:
    """Returns the last plan. A running run has removed it until it has the next. Raises
    ArtifactError."""
    try:
        return artifact_io.read(out / "plan.json", TuningPlan)
    except ArtifactError as error:
        writer = writer_at_work(out)
        if not writer and not (out / "plan.json").exists():
            message = f"{out / 'plan.json'}: not found. `tunegate run` or `tunegate plan` writes it"
            raise ArtifactError(f"{message}: run one of them first, or pass --out.") from error
        if not writer:
            raise
        message = f"{out}: {writer} has no plan yet. Ask again once it tunes or builds."
        raise ArtifactError(message) from error


def _find(tasks: tuple[ResolvedTask, ...], query: str) -> tuple[ResolvedTask, str]:
    """Returns the task and its unique name. Raises ConfigError."""
    if not tasks:
        raise ConfigError("the last plan has no tasks: it changes no model that TVM compiles.")
    about = [entry.task for entry in tasks]
    names = task_names(about)
    fitting = tasks_named(about, query)
    if len(fitting) == 1:
        return tasks[fitting[0]], names[fitting[0]]
    what = "several tasks fit" if fitting else "no task of the last plan has that name"
    places = fitting or range(len(tasks))
    choices = "; ".join(f'"{names[at]}"' for at in places[:_SHOWN])
    more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    raise ConfigError(f'"{query}": {what}. Name one of: {choices}{more}.')


def _answer(entry: ResolvedTask) -> str:
    lookup = entry.lookup
    if is_resumed(entry.task.key, lookup):
        return "begun (ExactHit, measured only quickly): a cancelled run; the next one tunes on"
    return f"miss ({lookup.reason})" if isinstance(lookup, Miss) else type(lookup).__name__


def _claims_text(entry: ResolvedTask) -> str:
    count = len(entry.claims.records) if entry.claims is not None else 0
    if not count:
        return ""
    schedules = "1 schedule" if count == 1 else f"{count} schedules"
    return f"; {schedules} of the run's own zone to be measured before they count"


def _lines(report: Explained, task: TuningTask) -> list[str]:
    now = report.now
    lines = [
        f"{report.task} ({task.operator}, {task.dtype}) on {task.target}",
        f"  used by {_users(task)}",
        f"  workload {report.workload[:16]}, target {report.target[:16]}",
        f"  at the last look-up: {report.at_look_up}",
        _difference(now),
    ]
    if now.neighbour is not None:
        neighbour = now.neighbour
        lines.append(
            f"  nearest neighbour: {neighbour.workload[:16]} in zone {neighbour.zone}, "
            f"target {neighbour.target}, distance {neighbour.distance:.2f}"
        )
    return lines


def _difference(now: Explanation) -> str:
    if now.differs == "nothing":
        return f"  in the cache: {now.detail}"
    return f"  first key that differs: {now.differs} - {now.detail}"


def _users(task: TuningTask) -> str:
    """Returns the models, with the side if only one has the task."""
    sides: dict[str, set[str]] = {}
    for use in task.uses:
        sides.setdefault(use.model, set()).add(use.side)
    return ", ".join(
        model if len(on_sides) > 1 else f"{model} ({on_sides.pop()})"
        for model, on_sides in sides.items()
    )


# Short names for a plan's tasks, just long enough to be unique.

_DIGITS = 12


def task_names(tasks: Sequence[TuningTask]) -> tuple[str, ...]:
    """Returns a name for each task, by which `tasks_named` finds it: a layer's name, with its model
    if that is not unique, and with the beginning of its digest if even that is not."""
    names = [(task.uses[0].name, _name_with_model(task)) for task in tasks]
    short = Counter(name for name, _ in names)
    longer = Counter(name for _, name in names)
    return tuple(
        name
        if short[name] == 1
        else with_model
        if longer[with_model] == 1
        else f"{with_model}:{task.key.workload[:_DIGITS]}"
        for (name, with_model), task in zip(names, tasks, strict=True)
    )


def tasks_named(tasks: Sequence[TuningTask], query: str) -> tuple[int, ...]:
    """Returns the indices of the tasks that a text may mean: by name, layer or beginning of a
    digest, else by a part of a name."""
    names = task_names(tasks)
    for fits in (_is_name, _is_layer, _is_part):
        fitting = [at for at, task in enumerate(tasks) if fits(query, names[at], task)]
        if fitting:
            return tuple(fitting)
    return ()


def _is_name(query: str, name: str, task: TuningTask) -> bool:
    return query == name or task.key.workload.startswith(query)


def _is_layer(query: str, _: str, task: TuningTask) -> bool:
    return query in _layers(task)


def _is_part(query: str, name: str, task: TuningTask) -> bool:
    return query in name or any(query in layer for layer in _layers(task))


def _layers(task: TuningTask) -> set[str]:
    """Returns the layers of a task, which may stand for several; each label names one or two."""
    parts = {part for use in task.uses for part in (use.name, *use.name.split(", "))}
    return parts | {f"{use.model}:{use.name}" for use in task.uses}


def _name_with_model(task: TuningTask) -> str:
    return f"{task.uses[0].model}:{task.uses[0].name}"
