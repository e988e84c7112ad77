"""The candidates that are built beside each other, and those built one after the other."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.candidates import CandidateBuild, Candidates
from tunegate.artifacts.changes import Side, side_named
from tunegate.artifacts.plans import TuningPlan
from tunegate.wording import plural

_SHOWN = 3
"""The sides that a line of progress has room for."""


class WantedBuild(NamedTuple):
    """A candidate of one side of a cell."""

    candidate: CandidateBuild
    cell: Cell
    side: Side

    @property
    def place(self) -> tuple[Cell, Side]:
        """The side that it is for."""
        return self.cell, self.side


def built_together(candidates: Candidates) -> list[list[CandidateBuild]]:
    """Returns the candidates of all targets in groups: those of one runtime that compiles nothing
    may be built beside each other, and cores that one build leaves idle do the next. A compiler
    times what it builds, so that its candidates come one after the other."""
    groups: list[list[CandidateBuild]] = []
    for each in _distinct(candidates):
        last = groups[-1][0] if groups else None
        if last is not None and not each.is_tuned and last.runtime == each.runtime:
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def compiled_later(groups: Sequence[Sequence[WantedBuild]]) -> list[frozenset[tuple[Cell, Side]]]:
    """Returns, for each group, the sides that a compiler builds after it for another candidate."""
    found: list[frozenset[tuple[Cell, Side]]] = []
    later: frozenset[tuple[Cell, Side]] = frozenset()
    for group in reversed(groups):
        found.append(later)
        later |= {each.place for each in group if each.candidate.is_tuned}
    return found[::-1]


def compiled_sides(plan: TuningPlan) -> frozenset[tuple[Cell, Side]]:
    """The sides of which a compiler takes anything: they have tasks."""
    return frozenset(
        (Cell(model=use.model, target=resolved.task.target), use.side)
        for resolved in plan.resolution.tasks
        for use in resolved.task.uses
    )


def told_builds(
    wanted: Sequence[WantedBuild],
    compiled: Collection[tuple[Cell, Side]],
    *,
    is_compared: bool = True,
) -> str:
    """The line of progress of a group; sides are named where something `is_compared`. Of what is
    `compiled` a compiler takes something; a side that it refuses at once is no build to wait for,
    unless there is no other."""
    taken = [each for each in wanted if not each.candidate.is_tuned or each.place in compiled]
    shown = taken or wanted
    sides = (side_named(x.cell.model, x.side, is_compared=is_compared) for x in shown)
    names = [*dict.fromkeys(sides)]
    more = len(names) - _SHOWN
    named = ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return f"build: {plural(len(shown), 'build')} with {shown[0].candidate.title}: {named}"


def _distinct(candidates: Candidates) -> list[CandidateBuild]:
    """Returns the candidates without duplicates; one with settings of its own for a target is
    another."""
    every = [candidate for each in candidates.values() for candidate in each]
    return [candidate for at, candidate in enumerate(every) if candidate not in every[:at]]
