"""The tasks of squeezenet as one tuning run left them, for reports that look like real ones."""

from __future__ import annotations

from typing import Literal

import msgspec

from tunegate_cache.format.records import WorkloadKey

Source = Literal["exact", "transfer", "search", "default"]
Stopped = Literal["exact", "finished", "converged", "budget", "failed", "cancelled", "not-started"]


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    weight: int
    ms: float | None
    before_ms: float | None
    source: Source = "exact"
    trials: int = 0
    stopped: Stopped = "exact"
    number: int = 0

    @property
    def key(self) -> WorkloadKey:
        return WorkloadKey(workload=f"{self.number:064x}", target="f" * 64)

    @property
    def total_ms(self) -> float:
        return self.weight * (self.ms or 0.0)

    @property
    def gain_ms(self) -> float:
        return self.weight * ((self.before_ms or 0.0) - (self.ms or 0.0))


def _row(number: int, name: str, weight: int, ms: float) -> TaskRow:
    return TaskRow(name=name, weight=weight, ms=ms, before_ms=ms, number=number)


TASKS = (
    _row(1, "fused_conv2d_add_relu", 1, 1.912),
    _row(2, "fused_max_pool2d", 1, 0.214),
    _row(3, "fused_conv2d1_add1_relu1", 2, 0.163),
    _row(4, "fused_conv2d2_add2_relu2", 2, 0.188),
    _row(5, "fused_conv2d3_add2_relu2", 2, 0.871),
    _row(6, "fused_concatenate", 2, 0.058),
    _row(7, "fused_conv2d4_add3_relu3", 1, 0.144),
    _row(8, "fused_conv2d9_add7_relu7", 2, 0.604),
    _row(9, "fused_conv2d12_add9_relu9", 1, 0.733),
    _row(10, "fused_global_avg_pool2d", 1, 0.021),
)
