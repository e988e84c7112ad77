"""The inputs of a judgment."""

from __future__ import annotations

import msgspec

from tunegate.artifacts.changes import ChangeSet
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.shard_measurements import UnmeasuredShard


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of a judgment. Shards that are `unmeasured` decide about their models; `machine`
    is the name of the machine that measured, or the names of all."""

    changes: ChangeSet
    plan: TuningPlan | None = None
    outcomes: tuple[TuningOutcome, ...] = ()
    unmeasured: tuple[UnmeasuredShard, ...] = ()
    machine: str = ""
