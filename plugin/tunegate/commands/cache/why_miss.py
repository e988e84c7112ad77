"""`tunegate cache why-miss TASK`: the first key that differs, and the nearest neighbour."""

from __future__ import annotations

import msgspec

from tunegate import artifact_io
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import ResolvedTask, TuningTask
from tunegate.cache_admin import answering, open_cache_admin
from tunegate.cli.commands.cache.why_miss import WhyMissOptions
from tunegate.commands.standard_output import write_json
from tunegate.commands.table import show_lines
from tunegate.errors import PASS, ConfigError
from tunegate.tuning.unfinished import is_resumed
from tunegate_cache.format.records import Miss
from tunegate_cache.maintenance.explanation import Explanation, explain

_SHOWN = 8


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """`at_look_up` is what the last run was answered; `now` what the cache says now."""

    schema: int = 1
    task: str
    workload: str
    target: str
    at_look_up: str
    now: Explanation


def run(options: WhyMissOptions) -> int:
    """`task` is a layer's name, or the beginning of a workload digest, of the last plan."""
    settings = options.settings
    planned = artifact_io.read(settings.out / "plan.json", TuningPlan)
    resolved = _find(planned.resolution.tasks, options.task)
    admin = open_cache_admin(settings)
    trusted = admin.config.read_zones
    own = () if admin.config.zone in trusted else (admin.config.zone,)
    about = resolved.task.key, resolved.task.shape
    with answering(admin.config):
        now = explain(admin.store, trusted, *about, admin.keys, own=own)
    explained = Explained(
        task=_name(resolved.task),
        workload=resolved.task.key.workload,
        target=resolved.task.key.target,
        at_look_up=_answer(resolved) + _claimed(resolved),
        now=now,
    )
    if settings.as_json:
        write_json(explained)
    else:
        show_lines(_lines(explained, resolved.task))
    return PASS


def _find(tasks: tuple[ResolvedTask, ...], wanted: str) -> ResolvedTask:
    found = [t for t in tasks if t.task.key.workload.startswith(wanted) or wanted in _names(t.task)]
    found = found or [t for t in tasks if any(wanted in name for name in _names(t.task))]
    if len(found) == 1:
        return found[0]
    names = ", ".join(_name(t.task) for t in (found or tasks)[:_SHOWN])
    what = "several tasks fit" if found else "no task of the last plan has that name"
    raise ConfigError(f'"{wanted}": {what}. Name one of: {names}, or give its digest.')


def _names(task: TuningTask) -> set[str]:
    """A task may stand for several layers; each of its labels names one or two of them."""
    return {part for use in task.uses for part in (use.name, *use.name.split(", "))}


def _name(task: TuningTask) -> str:
    return task.uses[0].name


def _answer(resolved: ResolvedTask) -> str:
    found = resolved.lookup
    if is_resumed(resolved.task.key, found):
        return "ExactHit, measured only quickly: a run was cancelled, and the next one tunes on"
    return f"miss ({found.reason})" if isinstance(found, Miss) else type(found).__name__


def _claimed(resolved: ResolvedTask) -> str:
    count = len(resolved.claims.records) if resolved.claims is not None else 0
    if not count:
        return ""
    schedules = "1 schedule" if count == 1 else f"{count} schedules"
    return f"; {schedules} of the run's own zone to be measured before they count"


def _lines(explained: Explained, task: TuningTask) -> list[str]:
    now = explained.now
    lines = [
        f"{explained.task} ({task.operator}, {task.dtype}) on {task.target}",
        f"  workload {explained.workload[:16]}, target {explained.target[:16]}",
        f"  at the last look-up: {explained.at_look_up}",
        f"  first key that differs: {now.differs} - {now.detail}",
    ]
    if now.neighbour is not None:
        near = now.neighbour
        lines.append(
            f"  nearest neighbour: {near.workload[:16]} in zone {near.zone}, target {near.target}, "
            f"distance {near.distance:.2f}"
        )
    return lines
