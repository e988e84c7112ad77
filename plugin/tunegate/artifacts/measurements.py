"""The launches of both sides as they were measured, the GPU that they ran on, and their
comparison."""

from typing import Annotated, Literal

import msgspec

from tunegate.artifacts.builds import Cell, CellBuilds
from tunegate.artifacts.changes import ModelPath, Side
from tunegate.artifacts.histogram import Histogram
from tunegate.artifacts.plans import EnergySource
from tunegate.artifacts.tasks import ScheduleSource
from tunegate_cache.format.records import DeviceFingerprint, WorkloadKey

# A GPU: its identity, and its state at one moment.


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """A device that CUDA programs started here may use. `index` counts the devices of the machine
    in bus order. `is_part` is a MIG slice. Facts that a driver does not report are None."""

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
    """A device at one moment. `throttled` names the reasons for lowered clocks, idleness aside.
    `busy_percent` is the share of the last moments in which something ran. `processes` are the
    driver's numbers of those with a CUDA context."""

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    celsius: int | None = None
    watts: float | None = None
    used_bytes: int | None = None
    busy_percent: int | None = None
    throttled: tuple[str, ...] = ()
    processes: tuple[int, ...] = ()


# Measured launches, and their comparison. A file with numbers that no clock gives is refused.

LogRatio = Annotated[float, msgspec.Meta(ge=-100, le=100)]
Milliseconds = Annotated[float, msgspec.Meta(ge=1e-9, le=1e12)]
Megahertz = Annotated[float, msgspec.Meta(ge=0, le=1e6)]


class Clocks(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU's clocks in a launch, in MHz: the mean SM clock after the blocks of either side, and
    what held it back. `is_mediated`: the clock came with the side. `dropped` pairs were left out
    because the clock moved otherwise, or something outside held the device back. A MIG slice may
    not report its clock."""

    base_mhz: Megahertz | None
    head_mhz: Megahertz | None
    dropped: int
    is_mediated: bool
    throttled: tuple[str, ...] = ()


class Stalls(msgspec.Struct, frozen=True, kw_only=True):
    """The stalls of `base` and of `head`: inferences of at least `times` the usual time,
    consecutive ones counted once. The head had more in `head_worse` quartets of blocks, the base in
    `base_worse`. The head ran `inferences` in its blocks. Each takes `slower` times as long as the
    base's, at least 1: the machine alone gives the head so many more stalls."""

    times: float
    base: int
    head: int
    base_worse: int
    head_worse: int
    inferences: int
    slower: Annotated[float, msgspec.Meta(ge=1)] = 1.0


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One pair of fresh processes.

    `effect` is the Hodges-Lehmann estimate of ln(head / base) over block pairs, by block medians,
    `noise` its standard error; `mean_effect` is the estimate by block means, None if unknown. The
    medians are over all samples. `pairs` were made, even if `clocks` drops some. `*_peak_bytes` is
    the most resident memory by the end of the warm-up, `*_workspace_bytes` what running added to
    the loaded artifact, 0 if unknown. `*_joules` are those of one inference by the counters in
    `energy_source`, None without any. `stalls` has one for each size, smallest first, none in older
    measurements. `first_ms` are the medians of the first blocks of base and head, `load_ms` the
    processor's milliseconds to load them, None if not measured. `case` is the number of the given
    input case, from 1, or 0 if there are not several. `differing` says how the outputs differ on
    equal inputs, and that the head loads far longer, '' if neither is so or nobody looked.
    """

    effect: LogRatio
    base_ms: Milliseconds
    head_ms: Milliseconds
    pairs: int
    seconds: float
    noise: float = 0.0
    mean_effect: LogRatio | None = None
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
    first_ms: tuple[Milliseconds, Milliseconds] | None = None
    load_ms: tuple[Milliseconds, Milliseconds] | None = None
    case: int = 0
    differing: str = ""


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """The user's metric of both sides, larger is better. None if not asked for. `problem` is why
    there is no answer."""

    base: float | None = None
    head: float | None = None
    problem: str = ""


class LayersLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """One process with both sides. `whole_ms` is the time of all layers of the base in one
    inference, `base_ms` and `head_ms` are those of the layers that differ. `largest` has the
    differences of some of them by name, head minus base, largest first."""

    whole_ms: Milliseconds
    base_ms: Annotated[float, msgspec.Meta(ge=0)]
    head_ms: Annotated[float, msgspec.Meta(ge=0)]
    seconds: float
    largest: dict[str, float] = {}


class DifferingLayers(msgspec.Struct, frozen=True, kw_only=True):
    """The launches of the layers that differ, and the planned analyses. `problem` is why there are
    none, else ''."""

    launches: tuple[LayersLaunch, ...] = ()
    analyses: tuple[int, ...] = ()
    problem: str = ""


class CellMeasurement(msgspec.Struct, frozen=True, kw_only=True):
    """`reference_ms` is ONNX Runtime on the head model, for the reference column. `task_ms` is the
    time of each operator in one inference, measured inside the model. `controls` are effects of the
    base against itself. `disturbed`: too many launches were, or two controls. `alone` are the
    latencies of a head without a base, for an objective. `probes` are further starts of the head,
    which count for slow launches only; `starts` has the at most two start counts at which slow
    launches were looked for. `packages` tells which package makes an upgraded model slower.
    `layers` are those that differ, under their margin."""

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
    head_ms: Milliseconds | None = None
    reference_ms: Milliseconds | None = None
    task_ms: dict[Side, dict[str, float]] = {}
    notes: tuple[str, ...] = ()
    controls: tuple[LogRatio, ...] = ()
    alone: Histogram | None = None
    metric: Metric | None = None
    probes: tuple[Launch, ...] = ()
    starts: tuple[int, ...] = ()
    packages: str = ""
    layers: DifferingLayers | None = None


class MeasuredShard(msgspec.Struct, frozen=True, kw_only=True):
    """One of several runners whose measurements were merged. `machine` is its name until it
    restarts."""

    shard: int
    target: str
    machine: str
    device: DeviceFingerprint
    seed: str


class MeasurementRun(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `measurements.json`. `seed` is the source of inputs and order, in digits,
    because many readers round 64-bit JSON numbers. If several runners measured, `shards` has each
    with its seed, and `device` is the first one's."""

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
        """True if the whole interval lies on one side of zero."""
        return not self.low <= 0 <= self.high


class TaskDifference(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's part in the change: milliseconds per inference (time x weight) on either side,
    None on a side without it. Its `source` is `library` if no schedule runs it; `library` then
    names the runtime, else ''. `is_alone`: tuning timed it by itself, not a profile inside the
    model."""

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
    """The mean or a percentile of the latencies inside launches, on both sides. `mean` leaves out
    what hit a few blocks; `mean-of-all` is over every inference, with their `stalls`.
    `is_resolved`: this machine resolves it as finely as its margin needs."""

    what: Literal["mean", "mean-of-all", "first-block", "p90", "p99"]
    base_ms: float
    head_ms: float
    change_percent: Interval
    is_resolved: bool
    decision: Literal["fail", "pass", "undecided"]
    stalls: tuple[Stalls, ...] = ()


class EnergyChange(msgspec.Struct, frozen=True, kw_only=True):
    """The joules of one inference on both sides, of the whole machine. Without a margin there is no
    `decision`."""

    base_joules: float
    head_joules: float
    source: EnergySource
    change_percent: Interval
    decision: Literal["fail", "pass", "undecided"] | None = None


class LoadChange(msgspec.Struct, frozen=True, kw_only=True):
    """The processor's milliseconds to load either side, and what they decide."""

    base_ms: Milliseconds
    head_ms: Milliseconds
    change_percent: Interval
    decision: Literal["fail", "pass", "undecided"]


class LayersChange(msgspec.Struct, frozen=True, kw_only=True):
    """The change of the model that the layers which differ explain, in percent of `whole_ms`, the
    time of all layers of the base. Those that differ take `base_ms` and `head_ms`. `slowest` is the
    one that costs most, '' if none got slower, and `slowest_percent` its part of the change."""

    whole_ms: Milliseconds
    base_ms: float
    head_ms: float
    change_percent: Interval
    decision: Literal["fail", "pass", "undecided"]
    launches: int
    slowest: str = ""
    slowest_percent: float = 0.0


class Excluded(msgspec.Struct, frozen=True, kw_only=True):
    """The slow modes that the measurements exclude.

    No share of `share_percent` or more of the head's starts is so slow that the mean over starts is
    more than `mean_percent` slower; None if no share is excluded. `asked_percent` is the share in
    question, 0 if none; `is_clean` tells whether it is excluded. `slow` of `starts` exceeded the
    cut-off of that share, `cut_off_percent`. `slow_cases` are input cases that were slow in each of
    their starts while no other start was. The first `inferences` of each process after its warm-up
    were measured; later ones are unknown. 0 if not counted.
    """

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
    """`change_percent` is head against base: +10 means the head is ten percent slower. FAIL uses
    `low`, PASS uses `high`. `projected_launches` would decide an undecided cell. `clocks` are the
    means over its launches. `median` is the decision by the medians alone, which may pass although
    a test `inside` a launch fails or slow launches are not `excluded`. `energy` is an inference's,
    by counters; `load` and `layers` are there under a margin."""

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
    load: LoadChange | None = None
    layers: LayersChange | None = None


# The measurements of one runner of several, and what they belong to.


class ShardBinding(msgspec.Struct, frozen=True, kw_only=True):
    """The digests that bind a shard's measurements: the plan, the rules on how long to measure, and
    the tuning outcomes behind the builds."""

    plan: str
    rules: str
    outcomes: str


class ShardMeasurements(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `measurements-<shard>.json`. `machine` is the machine's name until it
    restarts. Of the tasks, only an older toolchain than this machine's has tuned the `unasked`."""

    schema: Literal[1] = 1
    shard: int
    target: str
    bound: ShardBinding
    machine: str
    run: MeasurementRun
    unasked: tuple[WorkloadKey, ...] = ()


class UnmeasuredShard(msgspec.Struct, frozen=True, kw_only=True):
    """A planned shard whose measurements do not count, and why. `status` is that of its models."""

    shard: int
    target: str
    models: tuple[ModelPath, ...]
    status: Literal["invalid-env", "error"]
    problem: str

    @property
    def reason(self) -> str:
        """The problem of the shard, and the command to run again."""
        return f"measuring shard {self.shard} on {self.target}: {self.problem}. {self.advice}"

    @property
    def advice(self) -> str:
        return f"Run tunegate measure --shard {self.shard} again, then tunegate verdict."

    def has(self, cell: Cell) -> bool:
        return cell.target == self.target and cell.model in self.models
