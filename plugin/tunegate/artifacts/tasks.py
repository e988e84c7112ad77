"""The functions to tune, and what the cache knows about them."""

from typing import Any, Literal

import msgspec

from tunegate.artifacts.changes import ChangeSet, ModelPath, Side
from tunegate_cache.format.records import (
    DeviceFingerprint,
    ExactHit,
    Lookup,
    Provenance,
    Toolchain,
    TuningRecord,
    WorkloadKey,
    WorkloadShape,
)


class TaskUse(msgspec.Struct, frozen=True, kw_only=True):
    """A use of a task by one side of a model. One inference of that side runs it `weight` times.
    `name` is the compiler's name for it there."""

    model: ModelPath
    side: Side
    weight: int
    name: str


class TuningTask(msgspec.Struct, frozen=True, kw_only=True):
    """One function to tune. `target` names a target of the configuration. `flops` and `bytes_moved`
    (inputs and outputs together) are per call, 0 if unknown. `attributes` is the JSON behind the
    target's key, '' in older task lists."""

    key: WorkloadKey
    shape: WorkloadShape
    target: str
    operator: str
    dtype: str
    flops: float
    uses: tuple[TaskUse, ...]
    bytes_moved: float = 0.0
    attributes: str = ""

    @property
    def is_of_base(self) -> bool:
        return any(use.side == "base" for use in self.uses)

    @property
    def is_of_base_alone(self) -> bool:
        return all(use.side == "base" for use in self.uses)

    def calls_on(self, side: Side) -> int:
        """Returns the calls per inference of that side over all models."""
        return sum(use.weight for use in self.uses if use.side == side)


class TaskSet(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `tasks.json`: every task once, whichever models and sides use it.
    `broken_bases` maps models whose base cannot be compiled to the reason."""

    schema: Literal[1] = 1
    changes: ChangeSet
    tasks: tuple[TuningTask, ...]
    notes: tuple[str, ...] = ()
    broken_bases: dict[ModelPath, str] = {}


class Claims(msgspec.Struct, frozen=True):
    """Records from an untrusted zone that this run may write, best or nearest first. This run
    measures them, whichever side uses them, before they count. `is_searched`: an earlier run
    finished the search of this very task."""

    records: tuple[TuningRecord, ...]
    is_searched: bool


Skipped = Literal["", "shared", "behind"]
"""The reason why a run does not tune a task, whatever the cache holds. `shared`: both sides of
every model that uses it have it, or none of these heads is compiled. `behind`: all models that
would pay for it stay far behind another runtime. '': the run tunes what is left of it."""


class ResolvedTask(msgspec.Struct, frozen=True):
    """`lookup` is the answer of trusted zones. A `skipped` task has no claims."""

    task: TuningTask
    lookup: Lookup
    claims: Claims | None = None
    skipped: Skipped = ""

    @property
    def is_settled(self) -> bool:
        """True if nothing is left to search: trusted zones have the answer, this run does not pay
        for the task, or the pull request has finished searching a task that only the head has."""
        if self.skipped:
            return True
        if isinstance(self.lookup, ExactHit):
            return not _is_search_due(self.lookup)
        is_searched = self.claims is not None and self.claims.is_searched
        return is_searched and not self.task.is_of_base

    @property
    def is_waiting(self) -> bool:
        """True if the task is unfinished and this run leaves it to `tunegate warm`."""
        return self.skipped == "shared" and not isinstance(self.lookup, ExactHit)


def _is_search_due(lookup: ExactHit) -> bool:
    """Returns whether a search is due: the default schedule is the answer, an older toolchain or
    another device has several others, and at most one of them was tried here. That one lost or no
    longer fits, and nothing was searched since."""
    if not lookup.records:
        return False
    first = lookup.records[0]
    schedules = [each for each in (*lookup.records, *lookup.failures) if each.template]
    are_tried = [
        schedule.device.name == first.device.name
        and schedule.is_timed_by(first.toolchain, first.device.driver)
        for schedule in schedules
    ]
    return not first.template and first.is_confirmed and not all(are_tried) and sum(are_tried) <= 1


class CacheUse(msgspec.Struct, frozen=True, kw_only=True):
    """The use of the cache in this run. `misses` counts by reason, `notes` are lines to show. `usd`
    is at S3's list prices, None if no store is Amazon's. `claimed` counts tasks for which only the
    run's own zone has something to measure."""

    location: str
    zone: str
    mode: Literal["off", "ro", "rw"]
    exact: int = 0
    transfer: int = 0
    misses: dict[str, int] = {}
    requests: int = 0
    bytes_read: int = 0
    seconds: float = 0.0
    usd: float | None = None
    notes: tuple[str, ...] = ()
    claimed: int = 0


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    tasks: tuple[ResolvedTask, ...]
    cache: CacheUse


# The origin of a record: machine, compiler and change.


class RecordOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """The origin in every record of a run: its times were taken on `device` with `toolchain`, for
    `source`. `installed` is the digest of the versions that decide what runs: this product's and
    the runtimes'."""

    device: DeviceFingerprint
    toolchain: Toolchain
    source: Provenance
    installed: str = ""


# The sources of a schedule.

ScheduleSource = Literal[
    "exact", "transfer", "search", "default", "own-zone", "claimed", "older", "prior", "tiles"
]
"""The origin of a schedule. `own-zone` was proposed by the pull request's zone and measured in this
run, `claimed` was not measured. `older` was measured by another toolchain only. `prior` was picked
by the prior and never measured. `tiles` is our own kernel in lower precision."""
UNMEASURED: tuple[ScheduleSource, ...] = ("transfer", "claimed", "older", "prior")
"""Sources whose schedules no trusted run has measured for their kernel with this compiler."""

Instruction = tuple[str, list[Any], list[Any], list[str]]
"""(kind, inputs, attributes, outputs), as TVM's `Trace.as_json` writes it."""
