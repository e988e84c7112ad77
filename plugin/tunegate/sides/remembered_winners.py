"""Cells that are built for one candidate alone, since an earlier run has elected it."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping

import msgspec

from tunegate.artifacts.builds import (
    Build,
    CandidateTime,
    Cell,
    CellCandidates,
    RuntimeChoice,
)
from tunegate.artifacts.candidates import Candidates
from tunegate.artifacts.changes import Side
from tunegate.artifacts.remembered_elections import RememberedElection
from tunegate_cache.format.how_built import HowBuilt
from tunegate_cache.format.records import DeviceFingerprint


def held_here(
    elections: Iterable[RememberedElection], device: DeviceFingerprint
) -> tuple[RememberedElection, ...]:
    """Those of this kind of device: a plan may be made on another one."""
    here = (device.name, device.units)
    return tuple(each for each in elections if (each.device, each.units) == here)


def remembered_winners(elections: Iterable[RememberedElection]) -> dict[Cell, str]:
    """The candidate of each cell, by name."""
    return {_cell(each): each.winner for each in elections}


def remembered_how(elections: Iterable[RememberedElection]) -> dict[tuple[Cell, str], HowBuilt]:
    """How the winner of each cell was built, where that is known."""
    return {(_cell(each), each.winner): each.how for each in elections if each.how is not None}


def lost_winners(
    winners: Mapping[Cell, str],
    sides: Iterable[tuple[Cell, Side]],
    built: Mapping[tuple[Cell, Side, str], Build],
) -> frozenset[Cell]:
    """The cells whose winner fails on one of these sides: both are elected anew."""
    return frozenset(
        cell
        for cell, side in sides
        if cell in winners
        if (build := built.get((cell, side, winners[cell]))) is None or build.error is not None
    )


def as_remembered(
    cells: Iterable[CellCandidates],
    elections: Iterable[RememberedElection],
    candidates: Candidates,
) -> tuple[CellCandidates, ...]:
    """The cells; a build that is the only one of its side says what was elected, and when."""
    known = {_cell(each): each for each in elections}
    return tuple(
        msgspec.structs.replace(
            each,
            base=_told(each.base, known[each.cell], candidates),
            head=_told(each.head, known[each.cell], candidates),
        )
        if each.cell in known
        else each
        for each in cells
    )


def _told(
    builds: tuple[Build, ...], election: RememberedElection, candidates: Candidates
) -> tuple[Build, ...]:
    if len(builds) != 1 or builds[0].error is not None or builds[0].candidate != election.winner:
        return builds
    titles = {each.name: each.title for each in candidates[election.target]}
    times = tuple(
        CandidateTime(candidate=name, title=titles[name], ms=ms)
        for name, ms in election.milliseconds.items()
        if name in titles
    )
    day = datetime.datetime.fromtimestamp(election.elected_at, datetime.UTC).date()
    choice = RuntimeChoice(times=times, reason=f"remembered from {day}", is_remembered=True)
    return (msgspec.structs.replace(builds[0], choice=choice),)


def _cell(election: RememberedElection) -> Cell:
    return Cell(model=election.model, target=election.target)
