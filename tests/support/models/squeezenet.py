"""The tasks of squeezenet as one tuning run left them, for reports that look like real ones."""

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
    _row(1, "conv1", 1, 1.912),
    _row(2, "pool1", 1, 0.214),
    _row(3, "fire2/squeeze1x1, fire3/squeeze1x1", 2, 0.163),
    _row(4, "fire2/expand1x1, fire3/expand1x1", 2, 0.188),
    _row(5, "fire2/expand3x3, fire3/expand3x3", 2, 0.871),
    _row(6, "fire2/concat, fire3/concat", 2, 0.058),
    _row(7, "fire4/squeeze1x1", 1, 0.144),
    _row(8, "fire5/expand3x3", 2, 0.604),
    _row(9, "conv10", 1, 0.733),
    _row(10, "pool10", 1, 0.021),
)


def slowed_row(row: TaskRow) -> TaskRow:
    """Returns the task after a change that makes two of them slower."""
    if row.name == "fire2/expand3x3, fire3/expand3x3":
        return msgspec.structs.replace(
            row, ms=1.121, source="default", number=95, before_ms=1.121, stopped="not-started"
        )
    if row.name == "fire5/expand3x3":
        return msgspec.structs.replace(
            row, ms=0.66, before_ms=3.88, source="search", trials=64, number=98, stopped="finished"
        )
    if row.name == "pool1":
        return msgspec.structs.replace(row, ms=0.196)
    return row
