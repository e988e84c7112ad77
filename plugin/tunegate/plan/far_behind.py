"""Checks whether more tuning can bring a model's compiled build near the runtime that ships.

A ratio alone says little: one model was 20 times slower than ONNX Runtime before tuning, and faster
than it after ten minutes. So only searched tasks count as time that the model keeps.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from tunegate import __version__
from tunegate.artifacts.builds import Build, CellBuilds
from tunegate.artifacts.candidates import CandidateBuild, Candidates
from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.outcomes import TaskOutcome, TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import RecordOrigin, ResolvedTask, TuningTask
from tunegate.ports import TaskIndex
from tunegate.tools import Tools
from tunegate.tune import headroom
from tunegate.tune.expected_time import TargetKind, known_ms
from tunegate.tune.model_keys import ModelOnTarget, model_keys, tasks_of_models
from tunegate.tune.outcomes import known_after
from tunegate_cache.format import model_standing
from tunegate_cache.format.records import Lookup, Miss, WorkloadKey

FAR = 2.0
"""A build cannot catch up if what it keeps exceeds this ratio to the runtime that ships."""
MIN_TRIALS = 32
"""After so many trials the curve of an unfinished search predicts the rest."""
MORE = 8
"""The prediction gives an unfinished task this factor of further trials."""


def is_far_behind(compiled_ms: float, other_ms: float, fixed_share: float) -> bool:
    """Returns whether the build stays far behind. `fixed_share` is the share of its time that no
    tuning removes."""
    return compiled_ms * fixed_share > FAR * other_ms


def kept_share(
    model: ModelPath,
    tasks: Iterable[ResolvedTask],
    outcomes: Mapping[WorkloadKey, TaskOutcome],
    known_keys: Collection[WorkloadKey],
    kind: TargetKind,
) -> float:
    """Returns the share of the head's time that stays after any tuning, 0 to 1.

    A task in `known_keys` stays as it is, because no run tunes it again. A task with few
    trials may fall to nothing.
    """
    whole_ms = kept_ms = 0.0
    for task in tasks:
        weight = sum(u.weight for u in task.task.uses if (u.model, u.side) == (model, "head"))
        outcome = outcomes.get(task.task.key)
        now_ms = (outcome.best_ms if outcome is not None else None) or known_ms(task, kind)
        whole_ms += weight * now_ms
        kept_ms += weight * now_ms * _remaining_share(outcome, is_known=task.task.key in known_keys)
    return kept_ms / whole_ms if whole_ms else 0.0


def _remaining_share(outcome: TaskOutcome | None, *, is_known: bool) -> float:
    if is_known:
        return 1.0
    if outcome is None or outcome.trials < MIN_TRIALS or outcome.best_ms is None:
        return 0.0
    return 1.0 - headroom.of_unfinished(1.0, outcome, more=MORE)


# Cache records of models whose compiled build stays far behind the runtime that ships.
#
# Such a record says only that tuning does not pay, for this kind of device and compiler. For a base
# it counts from trusted zones only. A head may have it from the run's own zone if its base has one,
# or has no base: a second push then pays nothing again. A forged record keeps a head untuned
# against a base that ships under another runtime, which makes no head faster.

_NANOSECONDS_PER_MS = 1_000_000


class KnownStandings:
    """Looks up which models stay far behind, on targets where another runtime among `candidates`
    can ship. On other targets models are tuned anyway."""

    def __init__(self, index: TaskIndex, origin: RecordOrigin, candidates: Candidates) -> None:
        self._index, self._origin = index, origin
        self._targets = {
            target for target, its in candidates.items() if not all(each.is_tuned for each in its)
        }

    def __call__(self, tasks: Sequence[TuningTask]) -> frozenset[ModelOnTarget]:
        keys = model_keys([task for task in tasks if task.target in self._targets], __version__)
        every = [key for sides in keys.values() for key in sides.values()]
        behind = self._behind(every, self._index.standings(every))
        heads = [
            sides["head"]
            for sides in keys.values()
            if "head" in sides and set(sides.values()) - behind == {sides["head"]}
        ]
        behind |= self._behind(
            heads, self._index.claims([(key, model_standing.shape_of(key)) for key in heads])
        )
        return frozenset(model for model, sides in keys.items() if set(sides.values()) <= behind)

    def _behind(
        self, keys: Sequence[WorkloadKey], lookups: Mapping[WorkloadKey, Lookup]
    ) -> set[WorkloadKey]:
        return {key for key in keys if self._is_behind(key, lookups.get(key, Miss("absent")))}

    def _is_behind(self, key: WorkloadKey, lookup: Lookup) -> bool:
        records = getattr(lookup, "records", ())
        standing = model_standing.standing_of(
            key, records, device=self._origin.device, toolchain=self._origin.toolchain
        )
        return standing is not None and is_far_behind(
            standing.compiled_nanoseconds, standing.other_nanoseconds, fixed_share=1.0
        )


def publish_standings(
    tools: Tools,
    plan: TuningPlan,
    outcomes: Sequence[TuningOutcome],
    builds: Sequence[CellBuilds],
) -> None:
    """Publishes which models stay far behind another runtime."""
    now = int(tools.context.clock.time())
    standings = new_standings(plan, outcomes, builds, tools.source.candidates)
    origin = tools.origin
    tools.index.publish(
        [
            record
            for standing in standings
            for record in model_standing.standing_records(
                standing,
                device=origin.device,
                toolchain=origin.toolchain,
                measured_at=now,
                source=origin.source,
            )
        ]
    )


def new_standings(
    plan: TuningPlan,
    outcomes: Sequence[TuningOutcome],
    builds: Sequence[CellBuilds],
    candidates: Candidates,
) -> tuple[model_standing.ModelStanding, ...]:
    """Returns the records of heads that this run tuned without finishing, and that stay far behind
    what ships."""
    resolved_tasks = plan.resolution.tasks
    keys = model_keys([task.task for task in resolved_tasks], __version__)
    known_keys = known_after(resolved_tasks, outcomes)
    outcome_of = {outcome.key: outcome for each in outcomes for outcome in each.tasks}
    of_models = tasks_of_models(resolved_tasks)
    standings = []
    for build in builds:
        where = (build.cell.model, build.cell.target)
        times = _times(build.head, candidates.get(build.cell.target, ()))
        tasks = [task for task in of_models.get(where, ()) if _is_at_head(task.task, where)]
        if times is None or not _goes_on(tasks, outcome_of, known_keys):
            continue
        kind: TargetKind = "cuda" if outcomes[0].device.kind == "cuda" else "llvm"
        share_kept = kept_share(build.cell.model, tasks, outcome_of, known_keys, kind)
        if is_far_behind(*times, fixed_share=share_kept):
            standings.append(_model_standing(keys[where]["head"], *times))
    return tuple(standings)


def _goes_on(
    tasks: Sequence[ResolvedTask],
    outcome_of: Mapping[WorkloadKey, TaskOutcome],
    known_keys: Collection[WorkloadKey],
) -> bool:
    """Returns whether this run spent trials on the tasks and a later one would spend more."""
    outcomes = [outcome_of[task.task.key] for task in tasks if task.task.key in outcome_of]
    is_tuned = any(outcome.trials for outcome in outcomes)
    return is_tuned and any(task.task.key not in known_keys for task in tasks)


def _is_at_head(task: TuningTask, where: ModelOnTarget) -> bool:
    return any((use.model, use.side) == (where[0], "head") for use in task.uses)


def _times(head: Build | None, candidates: Sequence[CandidateBuild]) -> tuple[float, float] | None:
    """Returns the milliseconds of the fastest tuned candidate, and of the fastest other one."""
    if head is None or head.choice is None:
        return None
    tuned_names = {candidate.name for candidate in candidates if candidate.is_tuned}
    times = [(time.candidate in tuned_names, time.ms) for time in head.choice.times]
    compiled_ms = [ms for is_tuned, ms in times if is_tuned]
    other_ms = [ms for is_tuned, ms in times if not is_tuned]
    return (min(compiled_ms), min(other_ms)) if compiled_ms and other_ms else None


def _model_standing(
    key: WorkloadKey, compiled_ms: float, other_ms: float
) -> model_standing.ModelStanding:
    return model_standing.ModelStanding(
        key=key,
        compiled_nanoseconds=round(compiled_ms * _NANOSECONDS_PER_MS),
        other_nanoseconds=round(other_ms * _NANOSECONDS_PER_MS),
    )
