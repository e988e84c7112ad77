"""What a run is expected to do once it has a plan."""

from __future__ import annotations

from typing import Literal

import msgspec

StepKind = Literal["tune", "build", "choose", "measure"]
"""The steps that take most of the time, in their order."""


class ExpectedStep(msgspec.Struct, frozen=True):
    """A step to come: what it does, and the seconds that it is likely to take."""

    kind: StepKind
    seconds: float
    text: str
