"""Cells that are built for few candidates, since an earlier run has elected among the others."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from tunegate.artifacts.builds import (
    Build,
    CandidateTime,
    Cell,
    CellCandidates,
    RefusedCandidate,
    RuntimeChoice,
)
from tunegate.artifacts.candidates import FLOAT32, Candidates
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


def is_left_out(elections: Iterable[RememberedElection]) -> Callable[[Cell, str], bool]:
    """Returns a function of a cell and a name: whether that candidate is not built."""
    known = {_cell(each): each for each in elections}
    return lambda cell, name: cell in known and known[cell].leaves_out(name)


def remembered_how(elections: Iterable[RememberedElection]) -> dict[tuple[Cell, str], HowBuilt]:
    """Returns how the winner of each cell was built, where that is known."""
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
    """Returns the cells, in which a build that is the only one of its side has the election and its
    date. An election that goes on begins with its leader."""
    known = {_cell(each): each for each in elections}
    return tuple(
        _remembered(each, known[each.cell], candidates) if each.cell in known else each
        for each in cells
    )


def _remembered(
    cell: CellCandidates, election: RememberedElection, candidates: Candidates
) -> CellCandidates:
    base, head = (_told(builds, election, candidates) for builds in (cell.base, cell.head))
    cell = msgspec.structs.replace(cell, base=base, head=head)
    is_anew = any(election.leaves_out(build.candidate) for build in (*base, *head))
    if is_anew or not election.is_cut_short:
        return cell
    lost = (each for each in _times(election, candidates) if each.candidate != election.winner)
    return msgspec.structs.replace(
        cell,
        first=election.winner,
        earlier=tuple(lost),
        refused=tuple(_refused(election, candidates)),
    )


def _told(
    builds: tuple[Build, ...], election: RememberedElection, candidates: Candidates
) -> tuple[Build, ...]:
    if len(builds) != 1 or builds[0].error is not None or builds[0].candidate != election.winner:
        return builds
    times = _times(election, candidates)
    reason = f"remembered from {_day(election)}"
    choice = RuntimeChoice(times=times, reason=reason, is_remembered=True)
    return (msgspec.structs.replace(builds[0], choice=choice),)


def _times(election: RememberedElection, candidates: Candidates) -> tuple[CandidateTime, ...]:
    known = {each.name: each for each in candidates[election.target]}
    return tuple(
        CandidateTime(
            candidate=name,
            title=known[name].title,
            ms=ms,
            has_unknown_error=known[name].precision != FLOAT32,
        )
        for name, ms in election.milliseconds.items()
        if name in known
    )


def _refused(election: RememberedElection, candidates: Candidates) -> Iterator[RefusedCandidate]:
    """Those of the earlier run, for the next one to know them."""
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
