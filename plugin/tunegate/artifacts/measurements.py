"""A GPU: its identity, and its state at one moment."""

from __future__ import annotations

from typing import Literal

import msgspec

from tunegate.artifacts.builds import Cell, CellBuilds
from tunegate.artifacts.changes import ModelPath, Side
from tunegate.artifacts.plans import EnergySource
from tunegate.artifacts.tasks import ScheduleSource
from tunegate_cache.format.records import DeviceFingerprint


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One device that CUDA programs started here may use. `index` counts the devices of the machine
    by their place on the bus; `is_part` is one that is a part of it (MIG). Facts that a driver does
    not tell are None."""

    index: int
    uuid: str
    name: str
    compute_capability: str
    cores: int
    memory_bytes: int
    driver: str
    power_cap_watts: float | None = None
    max_sm_mhz: int | None = None
    is_part: bool = False
    ecc: bool | None = None


class GpuState(msgspec.Struct, frozen=True, kw_only=True):
    """A device at one moment. `throttled` names the reasons for which its clocks are lower than
    they could be, idleness aside; `busy_percent` is the share of the last moments in which
    something ran; `processes` are those with a CUDA context, as the driver numbers them."""

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    celsius: int | None = None
    watts: float | None = None
    used_bytes: int | None = None
    busy_percent: int | None = None
    throttled: tuple[str, ...] = ()
    processes: tuple[int, ...] = ()


# Measured launches, and the comparison made of them.


class Histogram(msgspec.Struct, frozen=True, kw_only=True):
    """Latencies in bins of one percent; the first of `counts` is bin number `first`, which begins
    at 1.01**first milliseconds."""

    first: int
    counts: tuple[int, ...]


class Clocks(msgspec.Struct, frozen=True, kw_only=True):
    """The clocks of a GPU in a launch, in MHz: the means of its SM clock after the blocks of either
    side, and what held it back. They are `is_mediated` where the clock came with the side;
    `dropped` pairs were left out because it moved otherwise, or something held the device back from
    outside. A part of a device (MIG) may not tell its clock."""

    base_mhz: float | None
    head_mhz: float | None
    dropped: int
    is_mediated: bool
    throttled: tuple[str, ...] = ()


class Stalls(msgspec.Struct, frozen=True, kw_only=True):
    """The stalls of `base` and of `head`: an inference of so many `times` the usual time or more,
    or several in a row. In `head_worse` of the quartets of blocks the head had more of them, in
    `base_worse` the base. The head ran `inferences` in its blocks."""

    times: float
    base: int
    head: int
    base_worse: int
    head_worse: int
    inferences: int


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One pair of fresh processes. `effect` is the Hodges-Lehmann estimate of ln(head / base)
    over its block pairs, by the median of each block, `noise` its standard error by their
    scatter; `mean_effect` is the same estimate by the mean of each block, None where nobody
    knows. The medians are of all its samples. `pairs` are those that were made, also where
    `clocks` says that some do not count. `*_peak_bytes` are the most memory that a process had
    resident by the end of its warm-up, `*_workspace_bytes` what running added to the loaded
    artifact, 0 where nobody knows. `*_joules` are those of one inference, by the counters that
    `energy_source` names; None where there are none. `stalls` are those of each
    size, the smallest first; none in older measurements.
    `case` is which of the cases that were given
    for the inputs it was run on, from 1; 0 where there are not several."""

    effect: float
    base_ms: float
    head_ms: float
    pairs: int
    seconds: float
    noise: float = 0.0
    mean_effect: float | None = None
    base_times: Histogram | None = None
    head_times: Histogram | None = None
    base_peak_bytes: int = 0
    head_peak_bytes: int = 0
    base_workspace_bytes: int = 0
    head_workspace_bytes: int = 0
    clocks: Clocks | None = None
    base_joules: float | None = None
    head_joules: float | None = None
    energy_source: EnergySource | None = None
    stalls: tuple[Stalls, ...] = ()
    case: int = 0


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """The user's metric of both sides, larger is better; None where it was not asked. `problem` is
    why there is no answer."""

    base: float | None = None
    head: float | None = None
    problem: str = ""


class CellMeasurement(msgspec.Struct, frozen=True, kw_only=True):
    """`reference_ms` is ONNX Runtime on the head model, for the reference column only; `task_ms` is
    what each operator takes in one inference, measured inside the model. `controls` are effects of
    the base against itself. It is `disturbed` where too many launches were, or two controls.
    `alone` are the latencies of a head without a base, where an objective asks for them. `probes`
    are probes of more starts of the head, which only count for slow launches; `starts` says at
    how many starts that question was answered, twice at most. `packages` says which package makes
    an upgraded model slower."""

    cell: Cell
    launches: tuple[Launch, ...]
    analyses: tuple[int, ...]
    stopped: Literal[
        "decided",
        "budget",
        "hopeless",
        "disturbed",
        "identical",
        "single",
        "invalid",
        "error",
    ]
    seconds: float
    head_ms: float | None = None
    reference_ms: float | None = None
    task_ms: dict[Side, dict[str, float]] = {}
    notes: tuple[str, ...] = ()
    controls: tuple[float, ...] = ()
    alone: Histogram | None = None
    metric: Metric | None = None
    probes: tuple[Launch, ...] = ()
    starts: tuple[int, ...] = ()
    packages: str = ""


class MeasuredShard(msgspec.Struct, frozen=True, kw_only=True):
    """One of several runners whose measurements were merged. `machine` is its name until it is
    started anew."""

    shard: int
    target: str
    machine: str
    device: DeviceFingerprint
    seed: str


class MeasurementRun(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `measurements.json`. `seed` is what the inputs and the order of all
    measurements came from, in digits: JSON numbers of 64 bits are rounded by many who read them.
    Where several runners measured, `shards` has each with its own seed, and `device` is that of
    the first."""

    schema: Literal[2] = 2
    device: DeviceFingerprint
    builds: tuple[CellBuilds, ...]
    cells: tuple[CellMeasurement, ...]
    environment: dict[str, str] = {}
    seed: str = ""
    shards: tuple[MeasuredShard, ...] = ()


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    low: float
    center: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Returns whether the whole interval lies on one side of zero."""
        return not self.low <= 0 <= self.high


class TaskDifference(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's part in the change: milliseconds per inference (time x weight) on either side;
    None on the side that does not have it. Its `source` is `library` where no schedule of ours runs
    it; `library` is the runtime that does then, and '' else. It `is_alone` where tuning timed it by
    itself, and no profile inside the model did."""

    name: str
    base_ms: float | None
    head_ms: float | None
    source: ScheduleSource | Literal["library"]
    library: str = ""
    is_alone: bool = False

    @property
    def difference_ms(self) -> float:
        return (self.head_ms or 0.0) - (self.base_ms or 0.0)


class Inside(msgspec.Struct, frozen=True, kw_only=True):
    """The mean or a percentile of the latencies inside launches, on both sides. The `mean` leaves
    out what befell a few blocks; `mean-of-all` is that of every inference, with their `stalls`. It
    is `is_resolved` where this machine can tell it as finely as its margin asks."""

    what: Literal["mean", "mean-of-all", "p90", "p99"]
    base_ms: float
    head_ms: float
    change_percent: Interval
    is_resolved: bool
    decision: Literal["fail", "pass", "undecided"]
    stalls: tuple[Stalls, ...] = ()


class EnergyChange(msgspec.Struct, frozen=True, kw_only=True):
    """The joules of one inference on both sides, of the whole machine. There is no `decision`
    without a margin."""

    base_joules: float
    head_joules: float
    source: EnergySource
    change_percent: Interval
    decision: Literal["fail", "pass", "undecided"] | None = None


class Excluded(msgspec.Struct, frozen=True, kw_only=True):
    """The slow modes that the measurements exclude. `share_percent`: no such share of the head's
    starts, or a larger one, is so slow that the mean over starts is more than `mean_percent`
    slower; None where no share is excluded. `asked_percent` is the share that was asked for, 0
    where nobody asked; `is_clean` whether that is excluded. `slow` of `starts` were over the
    cut-off, slower by `cut_off_percent`, of that share. `slow_cases` are the cases of inputs that
    were slow at each of their starts, where no other start was slow. Of each process its first
    `inferences`, after its warm-up, were measured, and nothing is known of later ones; 0 where
    nobody counted."""

    asked_percent: float
    share_percent: float | None
    confidence_percent: float
    mean_percent: float
    starts: int
    slow: int
    cut_off_percent: float
    is_clean: bool
    inferences: int = 0
    slow_cases: tuple[int, ...] = ()


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """`change_percent` is head against base: +10 means the head is ten percent slower; `low`
    is the bound that FAIL uses, `high` the bound that PASS uses. `projected_launches` is how
    many would decide an undecided cell; `clocks` are the means over its launches. `median` is
    the decision by the medians alone: they may pass where what is `inside` fails, or slow
    launches are not `excluded`. `energy` is what counters say of an inference."""

    cell: Cell
    base_ms: float | None
    head_ms: float | None
    reference_ms: float | None
    change_percent: Interval | None
    decision: Literal["fail", "pass", "undecided"] | None
    median: Literal["fail", "pass", "undecided"] | None = None
    launches: int
    effects_percent: tuple[float, ...]
    projected_launches: int | None
    stopped: str
    differences: tuple[TaskDifference, ...] = ()
    inside: tuple[Inside, ...] = ()
    excluded: Excluded | None = None
    clocks: Clocks | None = None
    energy: EnergyChange | None = None


# The measurements of one runner of several, and what they belong to.


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
