"""What stays of a run when its report is gone: a line for each model on each target."""

from __future__ import annotations

from typing import Literal

import msgspec

from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.measurements import Interval
from tunegate.artifacts.verdicts import Status


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the history. `at` is in seconds since 1970; `release` is the tag of
    the head, where it has one."""

    schema: Literal[1] = 1
    at: int
    commit: str
    release: str = ""
    model: ModelPath
    target: str
    device: str
    runtime: str
    status: Status
    base_ms: float | None
    head_ms: float | None
    change_percent: Interval | None = None
    trials: int = 0
