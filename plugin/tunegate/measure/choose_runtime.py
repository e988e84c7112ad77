"""Chooses what ships: of the builds of a side, the fastest candidate.

Both sides are decided alike, so the gate sees the change and not chance: the head's election starts
from the base's candidate, and only a gain above the noise replaces it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

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
from tunegate.artifacts.candidates import RuntimeName
from tunegate.artifacts.changes import Side
from tunegate.decide.error_budget import outside
from tunegate.errors import MeasurementError
from tunegate.measure.build_sides import build_directory
from tunegate.measure.election import Launching, Race
from tunegate.ports import Benchmarker, Shipping
from tunegate.tools import RunContext

_ALL_LATE = (
    "which runtime the base ships with could not be measured: "
    "its election had no time for what the head ships"
)


def choose_runtime(
    candidates: Sequence[CellCandidates],
    *,
    benchmarker: Benchmarker,
    shipping: Shipping,
    context: RunContext,
    seconds: float,
) -> tuple[CellBuilds, ...]:
    """Returns the cells with one build per side, each in the directory that users know. If only
    weights differ, one side is measured for both. No further launch of a side starts after
    `seconds`."""
    directories = _ShippedBuilds(context.out, shipping)
    choosing = _Choosing(context, benchmarker, seconds)
    cells = []
    for cell in candidates:
        of_head = {build.candidate for build in cell.head if build.error is None}
        of_base = choosing.of(cell, cell.base, default=None, like=None, essential=of_head)
        late = _late_candidates(cell.base, of_base)
        base = _comparable(cell, of_base, late)
        default = base.candidate if base is not None else ""
        builds = _without(late, cell.head)
        head = choosing.of(cell, builds, default=default, like=_twin(cell, base))
        base, head = (with_earlier(build, cell) for build in (base, head))
        cells.append(
            CellBuilds(
                cell=cell.cell,
                base=directories(cell.cell, "base", base, cell.base),
                head=directories(cell.cell, "head", head, cell.head),
            )
        )
    return tuple(cells)


class _Choosing:
    def __init__(self, context: RunContext, benchmarker: Benchmarker, seconds: float) -> None:
        self._progress = context.progress
        self._launching = Launching(
            benchmarker=benchmarker, clock=context.clock, out=context.out, seconds=seconds
        )

    def of(
        self,
        candidates: CellCandidates,
        builds: Sequence[Build],
        *,
        default: str | None,
        like: Build | None,
        essential: Collection[str] = (),
    ) -> Build | None:
        """Returns the build that ships. Only a clear gain displaces the candidate `default`; with
        `like` its choice is taken over. Without both, builds that cannot be measured are an error,
        and so is a single build that is `essential`, because nobody knows which one ships."""
        cell = candidates.cell
        usable = {build.candidate: build for build in builds if build.error is None}
        choice = RuntimeChoice(refused=tuple(_refused_candidates(cell, builds)))
        if not usable:
            return _unusable(cell, builds, choice)
        if len(builds) == 1:
            return builds[0]
        if len(usable) == 1:
            (only,) = usable.values()
            if default is None or not are_lasting(builds):  # a base's is not remembered
                return msgspec.structs.replace(only, choice=choice)
            return choose_unopposed(only, choice, self._launching)
        if like is not None and like.candidate in usable:
            its_choice = like.choice or choice
            choice = msgspec.structs.replace(
                choice,
                times=its_choice.times,
                is_complete=its_choice.is_complete,
                is_cut_short=its_choice.is_cut_short,
            )
            alike = msgspec.structs.replace(usable[like.candidate], choice=choice)
            return lasting(alike, builds)
        return lasting(self._race(candidates, usable, default, choice, essential), builds)

    def _race(
        self,
        candidates: CellCandidates,
        usable: Mapping[str, Build],
        default: str | None,
        choice: RuntimeChoice,
        essential: Collection[str],
    ) -> Build:
        titles = " or ".join(build.title for build in usable.values())
        cell = candidates.cell
        self._progress.step(f"choose: {titles} for {cell.model} on {cell.target}", "choose")
        first = usable.get(default or candidates.first, next(iter(usable.values())))
        race = Race(usable, first, self._launching, essential)
        try:
            return race.winner(choice)
        except MeasurementError as error:
            if default is None:
                unknown = f"which runtime the base ships with could not be measured: {error}"
                return msgspec.structs.replace(first, error=unknown, directory="")
            choice = msgspec.structs.replace(choice, reason=f"not measured: {error}")
            return msgspec.structs.replace(first, choice=choice)


def _refused_candidates(cell: Cell, builds: Sequence[Build]) -> Iterator[RefusedCandidate]:
    for build in builds:
        if build.error is not None:
            reason = _own_error(cell, build).removeprefix(f"{build.title} ")
            yield RefusedCandidate(
                candidate=build.candidate,
                title=build.title,
                reason=reason,
                is_lasting=are_lasting([build]),
                error=build.error_estimate[0] if outside(build.error_estimate) else None,
            )


def _unusable(cell: Cell, builds: Sequence[Build], choice: RuntimeChoice) -> Build | None:
    """Returns a failed build whose error has the reasons of all candidates. A build that computed
    other numbers keeps its own error."""
    if not builds:
        return None
    errors = list(dict.fromkeys(_own_error(cell, build) for build in builds))
    reasons = " ".join(f"{each.title}: {each.reason.rstrip('.')}." for each in choice.refused)
    reasons = errors[0] if len(errors) == 1 else reasons
    basis = next((build for build in builds if build.check is not None), builds[0])
    return msgspec.structs.replace(basis, error=reasons, choice=choice)


def _own_error(cell: Cell, build: Build) -> str:
    return (build.error or "").removeprefix(f"{cell.model}: ")


def _late_candidates(builds: Sequence[Build], winner: Build | None) -> frozenset[str]:
    """Returns the working candidates that the base's election had no time for."""
    if winner is None or winner.choice is None or not winner.choice.times:
        return frozenset()
    usable = {build.candidate for build in builds if build.error is None}
    return frozenset(usable - {time.candidate for time in winner.choice.times})


def _without(late: Collection[str], head: Sequence[Build]) -> tuple[Build, ...]:
    """Returns the head's builds, without those that the base had no time for. With one of them the
    base might be faster than what it ships, and a slower head would pass. If nothing else works
    they stay, because such a base is no baseline."""
    others = [each for each in head if each.error is None and each.candidate not in late]
    if not others:
        return tuple(head)
    return tuple(
        msgspec.structs.replace(each, error=LATE_IN_BASE)
        if each.candidate in late and each.error is None
        else each
        for each in head
    )


def _comparable(
    candidates: CellCandidates, base: Build | None, late: Collection[str]
) -> Build | None:
    """Returns the base, or None if it cannot be compared: a build that the head has crashed on it,
    or its election had no time for a candidate that the head can ship. What is left of such a base
    may be slower than what ships, and a slower head would pass."""
    of_head = {build.candidate for build in candidates.head if build.error is None}
    lost_to_crashes = [
        build for build in candidates.base if build.crashed and build.candidate in of_head
    ]
    if base is None or base.error is not None:
        return base
    if lost_to_crashes:
        return msgspec.structs.replace(base, error=lost_to_crashes[0].error, directory="")
    if of_head and of_head <= set(late):
        return msgspec.structs.replace(base, error=_ALL_LATE, directory="")
    return base


def _twin(candidates: CellCandidates, base: Build | None) -> Build | None:
    """Returns the base's build if the kernels and schedules that both sides share are the same.
    What only the head has is there by chance: whether parts pay was measured for each."""
    of_base, of_head = _kernels(candidates.base), _kernels(candidates.head)
    both = of_base.keys() & of_head.keys()
    is_same = bool(both) and all(of_base[name] == of_head[name] for name in both)
    return base if is_same else None


def _kernels(builds: Sequence[Build]) -> dict[str, list[tuple[str, str, int]]]:
    """Returns the kernels of each build that has some, with their schedules."""
    return {
        build.candidate: sorted((task.key.workload, task.rid, task.weight) for task in build.tasks)
        for build in builds
        if build.tasks and build.error is None
    }


class _ShippedBuilds:
    """Moves the chosen build to the directory that users know."""

    def __init__(self, out: Path, shipping: Shipping) -> None:
        self._out, self._shipping = out, shipping

    def __call__(
        self, cell: Cell, side: Side, build: Build | None, candidates: Sequence[Build]
    ) -> Build | None:
        if build is None or build.error is not None:
            return build
        at = build_directory(cell, side)
        others = [
            self._out / candidate.directory
            for candidate in candidates
            if candidate.directory and candidate.directory != build.directory
        ]
        digest = self._shipping.keep(self._out / build.directory, others, self._out / at)
        return msgspec.structs.replace(build, directory=str(at), digest=digest)


# Elections cut short by time or a crash, and how they continue.

LATE_IN_BASE = "not measured: the election of the base had no time for it"


def are_lasting(builds: Sequence[Build]) -> bool:
    """Returns whether another run would elect from the same builds."""
    return not any(build.crashed or build.error == LATE_IN_BASE for build in builds)


def lasting(build: Build, builds: Sequence[Build]) -> Build:
    """Returns the build. Its choice is marked complete only if its candidates were."""
    if build.choice is None or are_lasting(builds):
        return build
    is_whole = build.choice.is_complete or build.choice.is_cut_short
    is_cut_short = is_whole and not any(each.crashed for each in builds)
    choice = msgspec.structs.replace(build.choice, is_complete=False, is_cut_short=is_cut_short)
    return msgspec.structs.replace(build, choice=choice)


def with_earlier(build: Build | None, cell: CellCandidates) -> Build | None:
    """Returns the build with the times of candidates that lost in an earlier run, and its
    refusals."""
    if build is None or build.choice is None or not build.choice.times:
        return build
    choice = build.choice
    names = {time.candidate for time in choice.times}
    names |= {each.candidate for each in choice.refused}
    earlier_times = (time for time in cell.earlier if time.candidate not in names)
    refusals = (each for each in cell.refused if each.candidate not in names)
    choice = msgspec.structs.replace(
        choice, times=(*choice.times, *earlier_times), refused=(*choice.refused, *refusals)
    )
    return msgspec.structs.replace(build, choice=choice)


# A side with only one build: its time is measured, so the next run knows it.


def choose_unopposed(only: Build, choice: RuntimeChoice, launching: Launching) -> Build:
    """Returns the build with its time in the choice. The next run would find no other build and is
    spared the refused ones. A build that cannot be timed is not remembered."""
    try:
        ms = launching.benchmarker.single_ms(launching.out / only.directory)
    except MeasurementError:
        return msgspec.structs.replace(only, choice=choice)
    time = CandidateTime(candidate=only.candidate, title=only.title, ms=ms)
    choice = msgspec.structs.replace(choice, times=(time,), is_complete=True)
    return msgspec.structs.replace(only, choice=choice)


# Sides of a comparison that the user chose, instead of the faster runtime.


class Fixed(msgspec.Struct, frozen=True, kw_only=True):
    """`runtimes` restricts the candidates of a side; `builds` replaces a side."""

    runtimes: Mapping[Side, RuntimeName] = {}
    builds: Mapping[Side, Build] = {}


NOTHING_FIXED = Fixed()


def restrict_candidates(
    candidates: Sequence[CellCandidates], fixed: Fixed
) -> tuple[CellCandidates, ...]:
    """Returns the candidates still open to choice. A side that is no model stays as it is."""
    return tuple(
        msgspec.structs.replace(
            candidate,
            base=_of(candidate.base, "base", fixed),
            head=_of(candidate.head, "head", fixed),
        )
        for candidate in candidates
    )


def replace_builds(cells: Sequence[CellBuilds], fixed: Fixed) -> tuple[CellBuilds, ...]:
    """Returns the cells with the given builds in their places."""
    return tuple(
        msgspec.structs.replace(
            cell,
            base=fixed.builds.get("base", cell.base),
            head=fixed.builds.get("head", cell.head),
        )
        for cell in cells
    )


def _of(builds: tuple[Build, ...], side: Side, fixed: Fixed) -> tuple[Build, ...]:
    runtime = fixed.runtimes.get(side)
    return (
        builds
        if runtime is None
        else tuple(b for b in builds if b.runtime in {"", runtime} or b.candidate == runtime)
    )
