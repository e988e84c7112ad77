"""How a change's own configuration differs from the one that judges it."""

from __future__ import annotations

from typing import Literal

import msgspec

Effect = Literal["loosened", "tightened", "changed"]


class PolicyChange(msgspec.Struct, frozen=True, kw_only=True):
    """One difference. `key` is the key of the file; `old` and `new` are what base and head write.

    `counts` says whether this verdict was already reached with the new value. `model` is a path, or
    the glob of an entry where several of its models are concerned.
    """

    key: str
    old: str
    new: str
    effect: Effect
    counts: Literal["now", "once merged"]
    model: str = ""
    target: str = ""

    @property
    def weakens(self) -> bool:
        """Whether somebody has to agree to it: all that is not stricter than before."""
        return self.effect != "tightened"
