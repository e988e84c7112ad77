"""The steps that a run is expected to take once it has a plan."""

from __future__ import annotations

from typing import Literal

import msgspec

StepKind = Literal["tune", "build", "choose", "measure"]
"""The steps that take most of the time, in their order."""


class ExpectedStep(msgspec.Struct, frozen=True):
    """A future step: what it does, and the expected seconds of each of its parts, in order. Steps
    of equal kind and `subject` take about as long in the next run on the same machine. One with a
    cap ends by it at the latest, and may long before."""

    kind: StepKind
    parts: tuple[float, ...]
    text: str
    subject: str = ""
    has_cap: bool = False

    @property
    def seconds(self) -> float:
        return sum(self.parts)
