"""Sides of a comparison that somebody chose, instead of the faster runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tunegate.artifacts.builds import Build, CellBuilds, CellCandidates
from tunegate.artifacts.candidates import RuntimeName
from tunegate.artifacts.changes import Side


class Fixed(msgspec.Struct, frozen=True, kw_only=True):
    """`runtimes` are wanted of a side; `builds` take the place of one."""

    runtimes: Mapping[Side, RuntimeName] = {}
    builds: Mapping[Side, Build] = {}


NOTHING_FIXED = Fixed()


def restricted(candidates: Sequence[CellCandidates], fixed: Fixed) -> tuple[CellCandidates, ...]:
    """Returns the candidates that may still be chosen; a side that is no model stays one."""
    return tuple(
        msgspec.structs.replace(
            each, base=_of(each.base, "base", fixed), head=_of(each.head, "head", fixed)
        )
        for each in candidates
    )


def replaced(chosen: Sequence[CellBuilds], fixed: Fixed) -> tuple[CellBuilds, ...]:
    """The builds that were given, in their places."""
    return tuple(
        msgspec.structs.replace(
            each,
            base=fixed.builds.get("base", each.base),
            head=fixed.builds.get("head", each.head),
        )
        for each in chosen
    )


def _of(builds: tuple[Build, ...], side: Side, fixed: Fixed) -> tuple[Build, ...]:
    wanted = fixed.runtimes.get(side)
    return (
        builds
        if wanted is None
        else tuple(b for b in builds if b.runtime in {"", wanted} or b.candidate == wanted)
    )
