"""Elections that were cut short by their time or a crash, and their continuation."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tunegate.artifacts.builds import Build, CellCandidates

LATE_IN_BASE = "not measured: the election of the base had no time for it"


def are_lasting(builds: Sequence[Build]) -> bool:
    """Returns whether another run would have the same builds to elect from."""
    return not any(build.crashed or build.error == LATE_IN_BASE for build in builds)


def lasting(build: Build, builds: Sequence[Build]) -> Build:
    """The build; its choice is no more complete than what there was to elect from."""
    if build.choice is None or are_lasting(builds):
        return build
    is_whole = build.choice.is_complete or build.choice.is_cut_short
    is_cut_short = is_whole and not any(each.crashed for each in builds)
    choice = msgspec.structs.replace(build.choice, is_complete=False, is_cut_short=is_cut_short)
    return msgspec.structs.replace(build, choice=choice)


def with_earlier(build: Build | None, cell: CellCandidates) -> Build | None:
    """Returns the build, with the times of candidates that lost in an earlier run, and with those
    that it refused."""
    if build is None or build.choice is None or not build.choice.times:
        return build
    choice = build.choice
    known = {time.candidate for time in choice.times}
    known |= {each.candidate for each in choice.refused}
    lost = (time for time in cell.earlier if time.candidate not in known)
    refused = (each for each in cell.refused if each.candidate not in known)
    choice = msgspec.structs.replace(
        choice, times=(*choice.times, *lost), refused=(*choice.refused, *refused)
    )
    return msgspec.structs.replace(build, choice=choice)
