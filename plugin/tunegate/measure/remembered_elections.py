"""Elections of candidates as records of the cache, so that an unchanged model elects nothing again.

Elections come from trusted zones only, and match on device, driver, compiler and installed
packages. A change uses one only if base and head have the same key: both sides then build the same
candidate, so a forged record favours neither.
"""

import datetime
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

import msgspec

from tunegate.artifacts.builds import (
    Build,
    CandidateTime,
    Cell,
    CellBuilds,
    CellCandidates,
    RefusedCandidate,
    RuntimeChoice,
)
from tunegate.artifacts.candidates import FLOAT32, Candidates, RememberedElection
from tunegate.artifacts.changes import ModelChange, ModelPath, Side
from tunegate.artifacts.inputs import Files
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.config import TargetConfig
from tunegate.models.export_models import ExportedModels, export_models
from tunegate.review.model_settings import entry_for, values_for
from tunegate.tools import Tools
from tunegate.tune.model_keys import ModelOnTarget, UsedSchedule, known_schedules
from tunegate_cache.format.how_built import HowBuilt
from tunegate_cache.format.model_election import ModelElection, election_of, election_records
from tunegate_cache.format.records import DeviceFingerprint, Miss, TuningRecord, WorkloadKey

_NANOSECONDS_PER_MS = 1_000_000


class KnownElections:
    """Looks up the elections of unchanged models."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._now = int(tools.context.clock.time())

    def __call__(
        self, plan: TuningPlan, outcomes: Sequence[TuningOutcome] | None = None
    ) -> tuple[RememberedElection, ...]:
        """Returns the elections of models whose sides share one key after these `outcomes`. Without
        `outcomes`, only models of which this run tunes nothing."""
        tuned_models = _tuned_models(plan) if outcomes is None else set()
        keys = {
            where: next(iter(sides.values()))
            for where, sides in election_keys(self._tools, plan, outcomes or ()).items()
            if len(set(sides.values())) == 1 and where not in tuned_models
        }
        standings = self._tools.index.standings([*keys.values()])
        elections = (
            self._election_of(
                where, key, getattr(standings.get(key, Miss("absent")), "records", ())
            )
            for where, key in keys.items()
        )
        return tuple(election for election in elections if election is not None)

    def _election_of(
        self, where: ModelOnTarget, key: WorkloadKey, records: Sequence[TuningRecord]
    ) -> RememberedElection | None:
        model, target = where
        candidates = [each.name for each in self._tools.source.candidates[target]]
        origin = self._tools.origin
        election = election_of(
            key,
            records,
            candidates,
            device=origin.device,
            toolchain=origin.toolchain,
            now=self._now,
        )
        if election is None:
            return None
        return RememberedElection(
            model=model,
            target=target,
            winner=election.winner,
            milliseconds={
                name: nanoseconds / _NANOSECONDS_PER_MS
                for name, nanoseconds in election.nanoseconds.items()
            },
            elected_at=election.measured_at,
            how=election.how,
            is_cut_short=election.is_cut_short,
            refused=tuple(sorted(election.refused)),
            device=origin.device.name,
            units=origin.device.units,
            driver=origin.device.driver,
        )


def with_elections_after(
    tools: Tools, plan: TuningPlan, outcomes: Sequence[TuningOutcome]
) -> TuningPlan:
    """Returns the plan with the elections of models that tuning left unchanged. A model whose
    tuning never ends would otherwise be elected in every run."""
    tuned_models = _tuned_models(plan)
    if not tuned_models:
        return plan
    elections = KnownElections(tools)(plan, outcomes)
    tuned_elections = tuple(
        election for election in elections if (election.model, election.target) in tuned_models
    )
    return msgspec.structs.replace(plan, elections=(*plan.elections, *tuned_elections))


def publish_elections(
    tools: Tools,
    plan: TuningPlan,
    outcomes: Sequence[TuningOutcome],
    builds: Sequence[CellBuilds],
) -> None:
    """Publishes the elections of the heads that another run would repeat."""
    origin = tools.origin
    tools.index.publish(
        [
            record
            for election in new_elections(tools, plan, outcomes, builds)
            for record in election_records(
                election, device=origin.device, toolchain=origin.toolchain, source=origin.source
            )
        ]
    )


def new_elections(
    tools: Tools,
    plan: TuningPlan,
    outcomes: Sequence[TuningOutcome],
    builds: Sequence[CellBuilds],
) -> tuple[ModelElection, ...]:
    """Returns the elections that measured every working candidate, or that lacked only time:
    another run continues them."""
    heads = {
        (build.cell.model, build.cell.target): build.head
        for build in builds
        if build.head is not None and build.head.error is None
        if (choice := build.head.choice) is not None and choice.times
        if choice.is_complete or choice.is_cut_short
    }
    keys = election_keys(tools, plan, outcomes) if heads else {}
    now = int(tools.context.clock.time())
    return tuple(
        _election(keys[where]["head"], head, head.choice or RuntimeChoice(), now)
        for where, head in heads.items()
        if "head" in keys.get(where, {})
    )


def _election(key: WorkloadKey, head: Build, choice: RuntimeChoice, now: int) -> ModelElection:
    return ModelElection(
        key=key,
        winner=head.candidate,
        nanoseconds=_nanoseconds(choice),
        measured_at=now,
        how=head.how,
        is_cut_short=choice.is_cut_short,
        refused=frozenset(each.candidate for each in choice.refused if each.is_lasting),
    )


def election_keys(
    tools: Tools, plan: TuningPlan, outcomes: Sequence[TuningOutcome] = ()
) -> dict[ModelOnTarget, dict[Side, WorkloadKey]]:
    """Returns an election key for each side of a model on a target, none for a model whose graph is
    missing. The key covers graph (not weights), shapes, given values by content, target,
    candidates, accuracy budget, installed packages and known schedules."""
    keying = _Keying(
        tools=tools,
        models=export_models(plan.changes, tools.source),
        schedules=known_schedules(plan.resolution.tasks, outcomes),
    )
    targets = {target.name: target for target in tools.config.targets}
    return {
        (change.path, name): {side: keying.of(change, side, targets[name]) for side in sides}
        for change in plan.changes.models
        if (sides := _known_sides(keying.models, change))
        for name in change.targets
        if name in targets
    }


@dataclass(frozen=True, kw_only=True)
class _Keying:
    tools: Tools
    models: ExportedModels
    schedules: Mapping[tuple[ModelOnTarget, Side], Sequence[UsedSchedule]]

    def of(self, change: ModelChange, side: Side, target: TargetConfig) -> WorkloadKey:
        tools, path = self.tools, change.path
        entry = entry_for(tools.config, path)
        content = [
            "election",
            tools.origin.installed,
            change.compiled_sides[side].graph_digest,
            sorted(self.models.files[path, side].shapes.items()),
            self._values(path, side),
            None if entry is None else entry.accuracy,
            target.threads or tools.threads,
            [
                (each.name, sorted(each.settings.items()))
                for each in tools.source.candidates[target.name]
            ],
            self.schedules.get(((path, target.name), side), ()),
        ]
        return WorkloadKey(_digest(content), election_target(target))

    def _values(self, path: ModelPath, side: Side) -> object:
        """Returns the input values, files by content: another file of the same name may make
        another candidate the fastest."""
        values = values_for(self.tools.config, path)
        contents = {
            name: [PurePath(file).stem for file in rule.values.files]
            for name, rule in self.models.files[path, side].given.items()
            if isinstance(rule.values, Files)
        }
        return [values, contents] if contents else values


def _known_sides(models: ExportedModels, change: ModelChange) -> tuple[Side, ...]:
    """Returns the sides of a model with a head, none if a graph is missing."""
    sides = change.compiled_sides
    is_known = "head" in sides and all(
        bool(version.graph_digest) and (change.path, side) in models.files
        for side, version in sides.items()
    )
    return tuple(sides) if is_known else ()


def election_target(target: TargetConfig) -> str:
    """Returns the digest that identifies a target in elections. The target's name and runner do not
    count."""
    settings = [target.layout, *([] if target.algorithm == "auto" else [target.algorithm])]
    return _digest(["election", target.kind, target.cpu, target.arch, *settings])


def _digest(content: object) -> str:
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()


def _nanoseconds(choice: RuntimeChoice) -> dict[str, int]:
    return {time.candidate: round(time.ms * _NANOSECONDS_PER_MS) for time in choice.times}


def _tuned_models(plan: TuningPlan) -> set[ModelOnTarget]:
    """Returns the models for which this run searches or measures claims."""
    return {
        (use.model, shard.target)
        for shard in plan.shards
        for task in shard.tasks
        if task.trials or task.resolved.claims is not None
        for use in task.resolved.task.uses
    }


# Cells built for few candidates, because an earlier run has elected among the others.


def held_here(
    elections: Iterable[RememberedElection], device: DeviceFingerprint
) -> tuple[RememberedElection, ...]:
    """Returns the elections of this kind of device with this driver. A plan may come from another
    machine."""
    here = (device.name, device.units, device.driver)
    return tuple(
        election
        for election in elections
        if (election.device, election.units, election.driver) == here
    )


def remembered_winners(elections: Iterable[RememberedElection]) -> dict[Cell, str]:
    """Returns the name of the elected candidate of each cell."""
    return {_cell(election): election.winner for election in elections}


def is_left_out(elections: Iterable[RememberedElection]) -> Callable[[Cell, str], bool]:
    """Returns a function of cell and name that tells whether the candidate is not built."""
    by_cell = {_cell(election): election for election in elections}
    return lambda cell, name: cell in by_cell and by_cell[cell].leaves_out(name)


def remembered_how(elections: Iterable[RememberedElection]) -> dict[tuple[Cell, str], HowBuilt]:
    """Returns how the winner of each cell was built, if known."""
    return {
        (_cell(election), election.winner): election.how
        for election in elections
        if election.how is not None
    }


def lost_winners(
    winners: Mapping[Cell, str],
    sides: Iterable[tuple[Cell, Side]],
    builds: Mapping[tuple[Cell, Side, str], Build],
) -> frozenset[Cell]:
    """Returns the cells whose winner fails on one of these sides. Both of their sides are elected
    anew."""
    return frozenset(
        cell
        for cell, side in sides
        if cell in winners
        if (build := builds.get((cell, side, winners[cell]))) is None or build.error is not None
    )


def as_remembered(
    cells: Iterable[CellCandidates],
    elections: Iterable[RememberedElection],
    candidates: Candidates,
) -> tuple[CellCandidates, ...]:
    """Returns the cells, where a side's only build gets the remembered election and its date. An
    election that continues starts from its leader."""
    by_cell = {_cell(election): election for election in elections}
    return tuple(
        _apply_election(cell, by_cell[cell.cell], candidates) if cell.cell in by_cell else cell
        for cell in cells
    )


def _apply_election(
    cell: CellCandidates, election: RememberedElection, candidates: Candidates
) -> CellCandidates:
    base, head = (
        _with_remembered_choice(builds, election, candidates) for builds in (cell.base, cell.head)
    )
    cell = msgspec.structs.replace(cell, base=base, head=head)
    is_anew = any(election.leaves_out(build.candidate) for build in (*base, *head))
    if is_anew or not election.is_cut_short:
        return cell
    losers = (each for each in _times(election, candidates) if each.candidate != election.winner)
    return msgspec.structs.replace(
        cell,
        first=election.winner,
        earlier=tuple(losers),
        refused=tuple(_refused_earlier(election, candidates)),
    )


def _with_remembered_choice(
    builds: tuple[Build, ...], election: RememberedElection, candidates: Candidates
) -> tuple[Build, ...]:
    if len(builds) != 1 or builds[0].error is not None or builds[0].candidate != election.winner:
        return builds
    times = _times(election, candidates)
    reason = f"remembered from {_day(election)}"
    choice = RuntimeChoice(times=times, reason=reason, is_remembered=True)
    return (msgspec.structs.replace(builds[0], choice=choice),)


def _times(election: RememberedElection, candidates: Candidates) -> tuple[CandidateTime, ...]:
    by_name = {each.name: each for each in candidates[election.target]}
    return tuple(
        CandidateTime(
            candidate=name,
            title=by_name[name].title,
            ms=ms,
            has_unknown_error=by_name[name].precision != FLOAT32,
        )
        for name, ms in election.milliseconds.items()
        if name in by_name
    )


def _refused_earlier(
    election: RememberedElection, candidates: Candidates
) -> Iterator[RefusedCandidate]:
    """Returns the candidates that the earlier run refused, for the next run to know."""
    reason = f"refused in the run of {_day(election)}, which this election goes on from"
    for each in candidates[election.target]:
        if each.name in election.refused:
            yield RefusedCandidate(
                candidate=each.name, title=each.title, reason=reason, is_lasting=True
            )


def _day(election: RememberedElection) -> datetime.date:
    return datetime.datetime.fromtimestamp(election.elected_at, datetime.UTC).date()


def _cell(election: RememberedElection) -> Cell:
    return Cell(model=election.model, target=election.target)
