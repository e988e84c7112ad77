"""What `tunegate warm` taught the cache."""

from __future__ import annotations

from typing import Literal

import msgspec

from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.verdicts import TuningSummary


class WarmedModel(msgspec.Struct, frozen=True, kw_only=True):
    """How many tasks of a model the cache knew before, and knows now; of `measured` that it knows
    now the default schedule was timed, and no trial paid."""

    model: ModelPath
    target: str
    tasks: int
    known_before: int
    known: int
    measured: int = 0


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
