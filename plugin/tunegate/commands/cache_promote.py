"""`tunegate cache promote`: what a pull request learned, for everybody, after a second look."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.commands.standard_output import write_json
from tunegate.commands.table import show_lines, show_table
from tunegate.config import Config
from tunegate.edges.shared_cache import SharedCache
from tunegate.errors import PASS, UNFIT, ConfigError
from tunegate.pipeline import Tools
from tunegate.settings import Settings
from tunegate.stages.export_models import export_models
from tunegate.stages.extract import extract
from tunegate.stages.promote import Candidacy, Promotion, candidacies, decided, election
from tunegate.toolbox import Workplace, open_workplace, opened_tools
from tunegate_cache.names import zone_problem
from tunegate_cache.records import TuningRecord, WorkloadKey

_SECONDS_PER_MINUTE = 60


class Promotions(msgspec.Struct, frozen=True, kw_only=True):
    """`published` is False where the records could not be delivered; they wait for the next run."""

    schema: int = 1
    from_zone: str
    zone: str
    published: bool
    tasks: tuple[Promotion, ...]


def run(settings: Settings, *, from_zone: str) -> int:
    """For the tasks of the models at HEAD. Within `budget.minutes`. Raises ConfigError."""
    problem = zone_problem(from_zone)
    place = open_workplace(settings)
    if problem is not None:
        raise ConfigError(f"--from-zone: {problem}.")
    if from_zone == place.config.cache.zone:
        raise ConfigError(f"--from-zone: {from_zone} is the zone to promote to. Name another.")
    root, head = place.repository.root, place.repository.revisions(None, None).head
    with opened_tools(settings, place.config, place.repository, root, head) as tools:
        standing = _standing(place, tools, from_zone)
        outcomes = _measured(place, tools, standing)
        results = decided(standing, outcomes)
        winners = [_signed_off(record, from_zone) for _, record in results if record is not None]
        published = tools.index.publish(winners)
    found = Promotions(
        from_zone=from_zone,
        zone=place.config.cache.zone,
        published=published,
        tasks=tuple(promotion for promotion, _ in results),
    )
    if settings.as_json:
        write_json(found)
    else:
        _show(found)
    return PASS if published else UNFIT


def _standing(place: Workplace, tools: Tools, from_zone: str) -> tuple[Candidacy, ...]:
    tasks = extract(
        place.all_models(),
        place.config,
        tools.repository,
        tools.compiler,
        tools.workdir,
        tools.progress,
    ).tasks
    wanted = [(task.key, task.shape) for task in tasks]
    theirs = SharedCache(
        msgspec.structs.replace(place.config.cache, zone=from_zone, read_zones=(), mode="ro"),
        state=tools.workdir / "promotion",
        root=place.repository.root,
        device=tools.device.fingerprint(),
    )
    return candidacies(tasks, theirs.lookup(wanted), tools.index.lookup(wanted))


def _measured(
    place: Workplace, tools: Tools, standing: Sequence[Candidacy]
) -> dict[WorkloadKey, TaskOutcome]:
    models = export_models(place.all_models(), tools.repository, tools.workdir)
    outcomes: dict[WorkloadKey, TaskOutcome] = {}
    for target in dict.fromkeys(candidacy.task.target for candidacy in standing):
        shard = election(target, standing, _seconds(place.config))
        tools.progress.step(f"promote: {len(shard.tasks)} tasks on {target}")
        for outcome in tools.tuner.recheck(shard, models):
            outcomes[outcome.key] = outcome
    return outcomes


def _seconds(config: Config) -> float | None:
    minutes = config.budget.minutes
    return None if minutes is None else minutes * _SECONDS_PER_MINUTE


def _signed_off(record: TuningRecord, from_zone: str) -> TuningRecord:
    source = msgspec.structs.replace(record.source, ref=f"promoted from {from_zone}")
    return msgspec.structs.replace(record, source=source)


def _show(found: Promotions) -> None:
    show_table(
        f"{found.from_zone} to {found.zone}",
        ("task", "", "claimed ms", "measured ms", "beside it ms", ""),
        (
            (
                promotion.name,
                promotion.status,
                f"{promotion.claimed_ms:.4g}",
                _milliseconds(promotion.measured_ms),
                _milliseconds(promotion.incumbent_ms),
                "not what was claimed" if promotion.is_lie else "",
            )
            for promotion in found.tasks
        ),
    )
    promoted = sum(promotion.status == "promoted" for promotion in found.tasks)
    show_lines([f"{promoted} of {len(found.tasks)} tasks have better records now"])


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
