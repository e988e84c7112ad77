"""The measurements of one runner of several, and what they belong to."""

from __future__ import annotations

from typing import Literal

import msgspec

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.measurements import MeasurementRun


class ShardBinding(msgspec.Struct, frozen=True, kw_only=True):
    """Digests that bind a shard's measurements: the plan, the rules on how long to measure, and the
    outcomes of tuning behind the builds."""

    plan: str
    rules: str
    outcomes: str


class ShardMeasurements(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `measurements-<shard>.json`. `machine` is the name that the machine has until
    it is started anew."""

    schema: Literal[1] = 1
    shard: int
    target: str
    bound: ShardBinding
    machine: str
    run: MeasurementRun


class UnmeasuredShard(msgspec.Struct, frozen=True, kw_only=True):
    """A planned shard whose measurements do not count, and why. `status` is that of its models."""

    shard: int
    target: str
    models: tuple[ModelPath, ...]
    status: Literal["invalid-env", "error"]
    problem: str

    @property
    def reason(self) -> str:
        """Returns the problem of the shard, and the command to run again."""
        return f"measuring shard {self.shard} on {self.target}: {self.problem}. {self.advice}"

    @property
    def advice(self) -> str:
        return f"Run tunegate measure --shard {self.shard} again, then tunegate verdict."

    def has(self, cell: Cell) -> bool:
        return cell.target == self.target and cell.model in self.models
