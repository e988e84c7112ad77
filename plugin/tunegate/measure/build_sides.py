"""Builds both sides at their best: the base gets its best known records, like the head. The gate
then sees the change, not the luck of tuning."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from tunegate.artifacts.builds import Build, Cell, CellCandidates, unbuilt
from tunegate.artifacts.candidates import LAUNCH, CandidateBuild, Candidates, RuntimeName
from tunegate.artifacts.changes import SIDES, ChangeSet, ModelPath, Side, side_named
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import RecordOrigin
from tunegate.config import Config, TargetConfig
from tunegate.measure import build_records, error_budgets, remembered_elections
from tunegate.models.export_models import ExportedModels, export_models
from tunegate.ports import Builder, BuildJob, CaseScorer
from tunegate.tools import ModelSource, RunContext
from tunegate.wording import plural
from tunegate_cache.format.how_built import HowBuilt
from tunegate_cache.format.records import WorkloadKey


def build(
    plan: TuningPlan,
    outcomes: Sequence[TuningOutcome],
    *,
    source: ModelSource,
    builders: Mapping[RuntimeName, Builder],
    context: RunContext,
    origin: RecordOrigin,
) -> tuple[CellCandidates, ...]:
    """Builds both sides of every cell that has work, for each candidate of its target. With a
    remembered election, only for its winner and the candidates that it had no time for, unless that
    winner fails on a side."""
    # What is built: both sides of each cell, with the best records that are known.
    models = export_models(plan.changes, source)
    cells = _cells(plan.changes, models)
    sides = [(cell, side) for cell in cells for side in SIDES if (cell.model, side) in models.files]
    best = build_records.best_records(plan, outcomes, origin)
    elections = remembered_elections.held_here(plan.elections, context.device.fingerprint())
    building = _Building(
        context=context,
        models=models,
        best=best,
        by_base=build_records.decided_by_base(plan, best.sources, models.config.targets),
        candidates=source.candidates,
        builders=builders,
        scorer=source.case_scorer,
        cases=source.workdir / "cases",
        sides_with_tasks=compiled_sides(plan),
        how=remembered_elections.remembered_how(elections),
    )
    # With a remembered election only what it does not leave out; where its winner fails on a side,
    # the others too.
    winners, left_out = (
        remembered_elections.remembered_winners(elections),
        remembered_elections.is_left_out(elections),
    )
    builds = building.build_candidates(sides, lambda cell, name: not left_out(cell, name))
    lost_winners = remembered_elections.lost_winners(winners, sides, builds)
    builds |= building.build_candidates(
        [side for side in sides if side[0] in lost_winners], left_out
    )
    cells_in_order = (_in_order(cell, builds, source.candidates[cell.target]) for cell in cells)
    readable = (_with_unreadable(each, models.unreadable) for each in cells_in_order)
    return remembered_elections.as_remembered(readable, elections, source.candidates)


class _Building(msgspec.Struct, frozen=True, kw_only=True):
    context: RunContext
    models: ExportedModels
    best: build_records.BestRecords
    by_base: Mapping[ModelPath, build_records.DecidedByBase]
    candidates: Candidates
    builders: Mapping[RuntimeName, Builder]
    scorer: CaseScorer | None
    cases: Path
    sides_with_tasks: Collection[tuple[Cell, Side]]
    how: Mapping[tuple[Cell, str], HowBuilt]

    def build_candidates(
        self, sides: Sequence[tuple[Cell, Side]], is_wanted: Callable[[Cell, str], bool]
    ) -> dict[tuple[Cell, Side, str], Build]:
        """Returns the builds of these sides for the candidates that `is_wanted` names."""
        builds = {
            (cell, side, candidate.name): _with_location(unbuilt(reason), candidate, Path())
            for cell, side in sides
            for candidate in self.candidates[cell.target]
            if is_wanted(cell, candidate.name)
            if (reason := error_budgets.lacks_values(self.models.config, cell.model, candidate))
        }
        groups = [
            [
                WantedBuild(candidate, cell, side)
                for candidate in group
                for cell, side in sides
                if candidate in self.candidates[cell.target]
                if error_budgets.is_tried(self.models.config, cell, candidate, self.candidates)
                if is_wanted(cell, candidate.name)
            ]
            for group in built_together(self.candidates)
        ]
        for cells, later in zip(groups, compiled_later(groups), strict=True):
            if cells:
                step = progress_line(cells, self.sides_with_tasks, is_compared=_has_base(sides))
                self.context.progress.step(step, "build")
                builds |= self._of(cells, later)
        return builds

    def _of(
        self, builds: Sequence[WantedBuild], later: Collection[tuple[Cell, Side]]
    ) -> dict[tuple[Cell, Side, str], Build]:
        jobs = [
            msgspec.structs.replace(self._job(each), is_followed=each.place in later)
            for each in builds
        ]
        build_of: dict[tuple[Cell, Side, str], Build] = {}
        for each, job, build in zip(builds, jobs, self._builds(builds, jobs), strict=True):
            candidate, cell, side = each
            place = candidate_directory(cell, side, candidate.name)
            result = self._score(_with_location(build, candidate, place), job, candidate)
            build_of[cell, side, candidate.name] = error_budgets.held_to_budget(
                result, self.models.config, cell.model, candidate
            )
        return build_of

    def _builds(self, builds: Sequence[WantedBuild], jobs: Sequence[BuildJob]) -> Sequence[Build]:
        candidate = builds[0].candidate
        builder = self.builders[candidate.runtime]
        if not candidate.is_tuned:
            return builder.build(jobs)
        places = [each.place for each in builds]
        by_place = _build_candidate(
            dict(zip(places, jobs, strict=True)), candidate, builder, self.by_base
        )
        return [by_place[place] for place in places]

    def _score(self, build: Build, job: BuildJob, candidate: CandidateBuild) -> Build:
        if self.scorer is None:
            return build
        return error_budgets.with_scores(build, job, self.models.config, candidate, self.scorer)

    def _job(self, build: WantedBuild) -> BuildJob:
        """Returns the job of a candidate, which keeps its cases if a command scores them."""
        candidate, cell, side = build
        job = _job(self.models, self.best, candidate, (cell, side), self.context.out)
        job = msgspec.structs.replace(job, how=self.how.get((cell, candidate.name)))
        if self.scorer is None or not error_budgets.is_scored(
            self.models.config, job.model.path, candidate
        ):
            return job
        cases = self.cases / candidate_directory(cell, side, candidate.name)
        return msgspec.structs.replace(job, cases=cases)


def _with_unreadable(
    cell: CellCandidates, unreadable: Mapping[tuple[ModelPath, Side], str]
) -> CellCandidates:
    """Returns the cell, with a failed build in place of a side that is not a model. A head's error
    has the base's reason too, which nothing else of the verdict tells: one round mends both."""
    model = cell.cell.model
    why = {s: unreadable[model, s] for s in SIDES if (model, s) in unreadable}
    if len(set(why.values())) == len(SIDES):
        why["head"] = f"{why['head'].removesuffix('.')}; and {why['base']}"
    base, head = (
        (unbuilt(why[side].removeprefix(f"{model}: ")),) if side in why else builds
        for side, builds in zip(SIDES, (cell.base, cell.head), strict=True)
    )
    return msgspec.structs.replace(cell, base=base, head=head)


def _build_candidate(
    jobs: Mapping[tuple[Cell, Side], BuildJob],
    candidate: CandidateBuild,
    builder: Builder,
    by_base: Mapping[ModelPath, build_records.DecidedByBase],
) -> dict[tuple[Cell, Side], Build]:
    """Returns the builds. A head waits for its base if the base decides about schedules of both."""
    later = {
        (cell, side)
        for cell, side in jobs
        if candidate.is_tuned and side == "head" and jobs[cell, side].how is None
        if cell.model in by_base and (cell, "base") in jobs
        if by_base[cell.model].keys or LAUNCH in candidate.settings
    }
    first = {which: job for which, job in jobs.items() if which not in later}
    builds = dict(zip(first, builder.build([*first.values()]), strict=True))
    heads = {
        (cell, side): build_records.as_in_base(
            job, jobs[cell, "base"], builds[cell, "base"], by_base[cell.model]
        )
        for (cell, side), job in jobs.items()
        if (cell, side) in later
    }
    if heads:
        builds |= zip(heads, builder.build([*heads.values()]), strict=True)
    return built_alike(builder, first | heads, builds)


def _in_order(
    cell: Cell, builds: Mapping[tuple[Cell, Side, str], Build], candidates: Sequence[CandidateBuild]
) -> CellCandidates:
    """Returns the builds of each side, in the order in which candidates are tried."""
    of: dict[Side, list[Build]] = {
        side: [
            builds[cell, side, candidate.name]
            for candidate in candidates
            if (cell, side, candidate.name) in builds
        ]
        for side in SIDES
    }
    return CellCandidates(
        cell=cell, base=_useful_builds(of["base"]), head=_useful_builds(of["head"])
    )


def _useful_builds(builds: Sequence[Build]) -> tuple[Build, ...]:
    """Returns the builds without those that add nothing to the others."""
    return tuple(build for build in builds if not build.is_needless) or tuple(builds)


def _cells(changes: ChangeSet, models: ExportedModels) -> list[Cell]:
    names = {target.name for target in models.config.targets}
    return [
        Cell(model=change.path, target=name)
        for change in changes.models
        for name in change.targets
        if name in names
        if (change.path, "head") in {**models.files, **models.unreadable}
    ]


def _job(
    models: ExportedModels,
    best: build_records.BestRecords,
    candidate: CandidateBuild,
    which: tuple[Cell, Side],
    out: Path,
) -> BuildJob:
    cell, side = which
    return BuildJob(
        model=models.job(cell.model, side, _target(models.config, cell)),
        records=best.records,
        sources=best.sources,
        directory=out / candidate_directory(cell, side, candidate.name),
        variant=candidate.variant,
        settings=candidate.settings,
        samples=error_budgets.samples_for(models.config, cell.model, candidate),
    )


def build_directory(cell: Cell, side: Side) -> Path:
    """Returns the directory of a build under `--out`, with a name that any file system takes."""
    return Path("builds") / _slug(cell.model) / cell.target / side


def candidate_directory(cell: Cell, side: Side, candidate: str) -> Path:
    """Returns the directory of a candidate until one is chosen."""
    directory = build_directory(cell, side)
    return directory.with_name(f"{directory.name}-{candidate}")


_ENDS_IN_A_DIGEST = re.compile(r"-[0-9a-f]{64}$")
_MAX_PLAIN = 120
"""With the digest it must fit into a file name of 255 bytes."""


def _slug(path: ModelPath) -> str:
    """Returns a name that no other path gets. A name that had to be changed, or that looks like a
    changed one, gets a digest of the path."""
    stem = path.removesuffix(".onnx")
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", stem).strip("._") or "model"
    if plain == stem and not _ENDS_IN_A_DIGEST.search(stem):
        return plain
    digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{plain[:_MAX_PLAIN]}-{digest}"


def _target(config: Config, cell: Cell) -> TargetConfig:
    return next(target for target in config.targets if target.name == cell.target)


def _with_location(build: Build, candidate: CandidateBuild, directory: Path) -> Build:
    return msgspec.structs.replace(
        build,
        directory="" if build.error else str(directory),
        runtime=candidate.runtime,
        variant=candidate.variant,
        title=candidate.title,
    )


def _has_base(sides: Sequence[tuple[Cell, Side]]) -> bool:
    return any(side == "base" for _, side in sides)


# Both sides without the schedules that their base had to drop.

_CellSide = tuple[Cell, Side]


def built_alike(
    builder: Builder, jobs: Mapping[_CellSide, BuildJob], builds: Mapping[_CellSide, Build]
) -> dict[_CellSide, Build]:
    """Returns the builds, heads without the schedules that compute other numbers in their base:
    otherwise a slower head could hide behind a schedule that its base had to drop. A head's fault
    takes no schedule from its base."""
    given_up = {
        cell: {kernel.key for kernel in build.wrong_kernels}
        for (cell, side), build in builds.items()
        if side == "base"
    }
    uneven = {
        (cell, side): keys
        for (cell, side), build in builds.items()
        if side == "head" and (keys := _scheduled_keys(build) & given_up.get(cell, set()))
    }
    again = [jobs[which].with_default_schedules(keys) for which, keys in uneven.items()]
    rebuilt = builder.build(again) if again else ()
    return {**builds, **dict(zip(uneven, rebuilt, strict=True))}


def _scheduled_keys(build: Build) -> set[WorkloadKey]:
    return {task.key for task in build.tasks if task.rid and build.error is None}


# Which candidates are built beside each other, and which one after the other.

_SHOWN = 3
"""A progress line has room for so many sides."""


class WantedBuild(NamedTuple):
    """A candidate of one side of a cell."""

    candidate: CandidateBuild
    cell: Cell
    side: Side

    @property
    def place(self) -> tuple[Cell, Side]:
        """The side that it is built for."""
        return self.cell, self.side


def built_together(candidates: Candidates) -> list[list[CandidateBuild]]:
    """Returns the candidates of all targets in groups. Candidates of one runtime that compiles
    nothing are built beside each other, so cores that one build leaves idle do the next. A compiler
    times what it builds, so its candidates come one after the other."""
    groups: list[list[CandidateBuild]] = []
    for each in _distinct(candidates):
        last = groups[-1][0] if groups else None
        if last is not None and not each.is_tuned and last.runtime == each.runtime:
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def compiled_later(groups: Sequence[Sequence[WantedBuild]]) -> list[frozenset[tuple[Cell, Side]]]:
    """Returns, for each group, the sides that a compiler builds later for another candidate."""
    groups_from_last: list[frozenset[tuple[Cell, Side]]] = []
    later: frozenset[tuple[Cell, Side]] = frozenset()
    for group in reversed(groups):
        groups_from_last.append(later)
        later |= {each.place for each in group if each.candidate.is_tuned}
    return groups_from_last[::-1]


def compiled_sides(plan: TuningPlan) -> frozenset[tuple[Cell, Side]]:
    """Returns the sides that a compiler takes part of: they have tasks."""
    return frozenset(
        (Cell(model=use.model, target=entry.task.target), use.side)
        for entry in plan.resolution.tasks
        for use in entry.task.uses
    )


def progress_line(
    builds: Sequence[WantedBuild],
    sides_with_tasks: Collection[tuple[Cell, Side]],
    *,
    is_compared: bool = True,
) -> str:
    """Returns the progress line of a group. Sides are named if something `is_compared`. A side that
    the compiler refuses at once is no build to wait for, unless there is no other."""
    compiled_builds = [
        each for each in builds if not each.candidate.is_tuned or each.place in sides_with_tasks
    ]
    parts = compiled_builds or builds
    sides = (side_named(x.cell.model, x.side, is_compared=is_compared) for x in parts)
    names = [*dict.fromkeys(sides)]
    more = len(names) - _SHOWN
    text = ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return f"build: {plural(len(parts), 'build')} with {parts[0].candidate.title}: {text}"


def _distinct(candidates: Candidates) -> list[CandidateBuild]:
    """Returns the candidates without duplicates. Own settings for a target make another
    candidate."""
    every = [candidate for each in candidates.values() for candidate in each]
    return [candidate for at, candidate in enumerate(every) if candidate not in every[:at]]
