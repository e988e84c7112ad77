"""`tunegate warm`: all configured models tuned for the cache, where nothing is compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tunegate import pipeline
from tunegate.artifacts.changes import ChangeSet
from tunegate.artifacts.warmed import Warmed
from tunegate.cli.commands.warm import WarmOptions
from tunegate.commands.standard_output import write_json
from tunegate.commands.table import show_lines, show_table
from tunegate.config import CacheConfig
from tunegate.edges.output.directory import opened_output
from tunegate.errors import PASS, UNFIT, ConfigError
from tunegate.globs import matches
from tunegate.project import open_project
from tunegate.render.stopped import tuning_ended
from tunegate.render.units import duration, money, plural
from tunegate.runtimes.requirements import require_installed
from tunegate.wiring import opened_tools


def run(options: WarmOptions) -> int:
    """Writes warm.json. Raises ConfigError for a glob that matches no configured model, and for a
    cache that may not be written."""
    settings = options.settings
    project = open_project(settings)
    _require_writing(project.config.cache)
    with opened_output(settings.out, "warm") as out:
        changes = _chosen(project.all_models(), options.models)
        out.forget(since="plan")
        require_installed(project.config, "tune")
        with opened_tools(settings, project.checkout(), out) as tools:
            warmed = pipeline.warm(tools, changes)
    if settings.as_json:
        write_json(warmed)
    else:
        _show(warmed)
    return PASS if warmed.is_published else UNFIT


def _require_writing(cache: CacheConfig) -> None:
    if cache.mode != "rw":
        message = f"cache.mode: {cache.mode} keeps nothing of what warm learns. Set it to rw."
        raise ConfigError(message)


def _chosen(changes: ChangeSet, globs: Sequence[str]) -> ChangeSet:
    paths = [change.path for change in changes.models]
    for glob in globs:
        if not any(matches(glob, path) for path in paths):
            raise ConfigError(f"--model: {glob} matches no configured model.")
    if not globs:
        return changes
    chosen = [c for c in changes.models if any(matches(glob, c.path) for glob in globs)]
    return msgspec.structs.replace(changes, models=tuple(chosen))


def _show(warmed: Warmed) -> None:
    show_table(
        f"zone {warmed.zone}",
        ("model", "target", "tasks", "known before", "known now"),
        ((m.model, m.target, m.tasks, m.known_before, m.known) for m in warmed.models),
    )
    show_lines(_told(warmed))


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
