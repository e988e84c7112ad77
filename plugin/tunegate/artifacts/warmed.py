"""The result of `tunegate warm`."""

from __future__ import annotations

from typing import Literal

import msgspec

from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.error_estimates import ErrorEstimate
from tunegate.artifacts.verdicts import TuningSummary


class WarmedModel(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a model's tasks that the cache knew before, and knows now; for `measured` of
    these only the default schedule was timed, without a trial."""

    model: ModelPath
    target: str
    tasks: int
    known_before: int
    known: int
    measured: int = 0


class WarmedShipping(msgspec.Struct, frozen=True, kw_only=True):
    """The candidate that a model ships with; `title` is its name in reports. `estimates` are its
    errors under a budget of accuracy, and `is_drawn` says that nobody gave inputs to tell them on.
    It `has_unknown_error` where it computes in other numbers than float32 and this run built
    nothing. `is_remembered`: an earlier run chose it. `reason` is why nothing ships, '' else.
    `trouble` are candidates that died, and what this one was built without since it died."""

    model: ModelPath
    target: str
    title: str = ""
    estimates: tuple[ErrorEstimate, ...] = ()
    is_drawn: bool = False
    has_unknown_error: bool = False
    is_remembered: bool = False
    reason: str = ""
    trouble: tuple[str, ...] = ()


class Warmed(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `warm.json`. `left` counts the tasks that a later run goes on with.
    `is_published` is False where records could not be delivered; they wait on this machine."""

    schema: Literal[1] = 1
    zone: str
    models: tuple[WarmedModel, ...]
    left: int
    is_published: bool
    tuning: TuningSummary
    notes: tuple[str, ...] = ()
    ships: tuple[WarmedShipping, ...] = ()
