"""Schedules of other people's databases: proposals, until they replay on our own modules."""

from __future__ import annotations

import statistics
from typing import Any, Literal

import msgspec

from tunegate_cache.format.records import Decision, WorkloadKey

Instruction = tuple[str, list[Any], list[Any], list[str]]
"""(kind, inputs, attributes, outputs), as TVM's `Trace.as_json` writes it."""


class ForeignSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """`arguments` are (dtype, shape) of each buffer; `instructions` have the names of a
    module that is not ours. The times are claims."""

    kind: Literal["llvm", "cuda"]
    arguments: tuple[tuple[str, tuple[int, ...]], ...]
    instructions: tuple[Instruction, ...]
    decisions: tuple[Decision, ...]
    run_nanoseconds: tuple[int, ...]

    @property
    def median_ms(self) -> float:
        return statistics.median(self.run_nanoseconds) / 1e6


class ImportedSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A foreign schedule as decisions under a template of our own task `key`; `number` is its place
    in the list that was given."""

    number: int
    key: WorkloadKey
    template: str
    decisions: tuple[Decision, ...]
