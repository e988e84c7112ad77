"""Elections of earlier runs, for models that are unchanged."""

from __future__ import annotations

import msgspec

from tunegate.artifacts.changes import ModelPath
from tunegate_cache.format.how_built import HowBuilt


class RememberedElection(msgspec.Struct, frozen=True, kw_only=True):
    """`winner` is the name of a candidate, and `how` it was built, if that is known; `milliseconds`
    are those of one inference under each candidate, as they were measured at `elected_at`, in
    seconds since 1970, on a `device` of this name and number of `units`. `is_cut_short`: it goes on
    with those that have no time here, but for the `refused`, which cannot ship."""

    model: ModelPath
    target: str
    winner: str
    milliseconds: dict[str, float]
    elected_at: int
    device: str
    units: int
    how: HowBuilt | None = None
    is_cut_short: bool = False
    refused: tuple[str, ...] = ()

    def leaves_out(self, candidate: str) -> bool:
        """Returns whether a candidate is not tried again: it lost, or cannot ship, or the election
        is over."""
        has_lost = not self.is_cut_short or candidate in {*self.milliseconds, *self.refused}
        return has_lost and candidate != self.winner
