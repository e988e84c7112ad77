"""The result of `tunegate bisect`."""

from __future__ import annotations

from typing import Literal

import msgspec

from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.measurements import Interval

Answer = Literal["fast", "slow", "skipped"]
EndsFinding = Literal["real", "noise", "machine", "method"]
"""What a reported slowdown is: `real` where the models differ in time, `noise` where a repeat shows
no difference, `machine` where this one cannot tell, `method` where both ends are one build, so how
they were measured made the difference."""


class MeasuredCommit(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for one commit. It `is_measured` unless its model is that of another one.
    `reason` says which, or why the commit was skipped."""

    commit: str
    subject: str = ""
    answer: Answer
    is_measured: bool = False
    change_percent: Interval | None = None
    reason: str = ""


class Bisection(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `bisect.json`. `change_percent` is that from `good` to `bad`. One of the
    `suspects`, with these `subjects`, made the model slow: a single one unless others could not be
    measured, none where `finding` is not `real`. `layers` got slower, the slowest first."""

    schema: Literal[1] = 1
    model: ModelPath
    target: str
    good: str
    bad: str
    finding: EndsFinding
    reason: str
    change_percent: Interval | None
    commits: int
    measurements: int
    suspects: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    steps: tuple[MeasuredCommit, ...] = ()
