"""What a user may set. The reading of `tunegate.yaml` is in `edges/config/file.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

Positive = Annotated[float, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
PositiveInt = Annotated[int, msgspec.Meta(ge=1)]
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]

DEFAULT_CACHE_URL = "~/.cache/tunegate"
"""The user's own cache directory, wherever `edges/cache/user_directories.py` finds it."""


AUTO = "auto"
"""The value of a target's key that leaves the choice to what is measured."""
Algorithm = Literal["auto", "direct", "im2col", "group-vectors"]
"""The form of convolutions."""


class _Section(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """A mapping of the file: kebab-case keys, unknown keys refused."""


class ObjectiveConfig(_Section, frozen=True, kw_only=True):
    """The share of inferences, in percent, that must take no longer than `ms`."""

    ms: Positive
    percentile: Annotated[float, msgspec.Meta(gt=0, lt=100)] = 99.0


class MetricCommandConfig(_Section, frozen=True, kw_only=True):
    """A command that prints how wrong the outputs are on each input, and the most that it may be,
    in the command's own unit."""

    run: Annotated[str, msgspec.Meta(min_length=1)]
    at_most: Annotated[float, msgspec.Meta(ge=0, le=1e12)]


class AccuracyConfig(_Section, frozen=True, kw_only=True):
    """How far a build in other numbers than float32 may be from float32, in percent: `max-error` is
    of the largest output, `min-agreement` the share of inputs whose largest output is the same. Or
    by the user's own `metric-command`."""

    max_error: Annotated[float, msgspec.Meta(gt=0, le=100)] | None = None
    min_agreement: Annotated[float, msgspec.Meta(gt=0, le=99.9)] | None = None
    metric_command: MetricCommandConfig | None = None

    def __post_init__(self) -> None:
        if not any(each is not None for each in msgspec.structs.astuple(self)):
            message = (
                "accuracy needs max-error, min-agreement or metric-command, or write accuracy: same"
            )
            raise ValueError(message)
        if self.min_agreement is not None and self.min_agreement <= 1:
            message = (
                f"min-agreement is in percent: {self.min_agreement:g} would let anything ship. "
                f"Write {min(99.9, 100 * self.min_agreement):g}"
            )
            raise ValueError(message)


Accuracy = Literal["same"] | AccuracyConfig
Size = Annotated[int, msgspec.Meta(ge=0)]
"""That of a dimension; one of 0 has no numbers, such as a past that is still empty."""
InputShape = tuple[Size, ...]
Scalar = bool | int | float | str


class ValuesConfig(_Section, frozen=True, kw_only=True):
    """What an input is fed with: numbers from `low` to `high`, the content of a `file`, one of the
    `cases`, or a `sequence` with the tensor of each file. Exactly one of the four is given."""

    low: int | float | None = None
    high: int | float | None = None
    file: str | None = None
    cases: tuple[Scalar, ...] = ()
    sequence: tuple[str, ...] | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it names."""
        named = (self.file, *self.cases, *(self.sequence or ()))
        return tuple(each for each in named if isinstance(each, str))


class InputConfig(_Section, frozen=True, kw_only=True):
    """An input: its full `shape`, unless the symbols of its dimensions are given, and its
    `values`."""

    shape: InputShape | None = None
    values: ValuesConfig | None = None


Inputs = Mapping[str, InputShape | InputConfig]
"""Input name -> its shape alone, or what is said of it."""
Dims = dict[str, Size]
"""The symbol of a dynamic dimension -> its size."""


class ProfileConfig(_Section, frozen=True, kw_only=True):
    """A profile of a model: what it adds to its entry, or says instead."""

    dims: Dims = {}
    inputs: Inputs = {}


class ModelConfig(_Section, frozen=True, kw_only=True):
    """One entry of `models`: a glob, the sizes of its dynamic dimensions, its targets, the
    latency that it must keep whatever the base does, and its budget of `accuracy`.

    `dims` gives sizes by symbol, before those of the whole file; `inputs` the full shape of an
    input. A model is gated once for each of its `profiles`. No `targets` means every target of the
    file.
    """

    path: str
    dims: Dims = {}
    inputs: Inputs = {}
    profiles: dict[str, ProfileConfig] = {}
    targets: tuple[str, ...] = ()
    objective: ObjectiveConfig | None = None
    accuracy: Accuracy = "same"


class TargetConfig(_Section, frozen=True, kw_only=True):
    """One place to run. `cpu` is the microarchitecture for LLVM (`native`: this machine's),
    `arch` the compute capability for CUDA; `threads` 0 means every core
    this process may use but one. `layout` is that of images inside the model: `auto` is `nhwc` on
    CPUs, and as the model has it elsewhere; `algorithm` is that of its convolutions. `runtime` is
    what runs the model: `auto` builds it for every runtime that is installed and runs there, and
    ships what is fastest. `artifact` is what ships: the file of that `runtime`, or a `native`
    shared object that needs none.

    Of CUDA targets: another GPU than `expect-gpu` is refused, a GPU that others use is waited for
    `device-wait-seconds`, and its clocks are locked while something is measured where
    `lock-clocks-mhz` says so and the machine permits it; a build launches its kernels as
    `cuda-graphs` where it can."""

    name: Name
    kind: Literal["llvm", "cuda"] = "llvm"
    cpu: str = "native"
    arch: str = "native"
    threads: Annotated[int, msgspec.Meta(ge=0)] = 0
    layout: Literal["auto", "nchw", "nhwc"] = "auto"
    algorithm: Algorithm = "auto"
    runtime: Name = AUTO
    artifact: Literal["runtime", "native"] = "runtime"
    runner: tuple[str, ...] = ("self-hosted",)
    usd_per_hour: NotNegative | None = None
    expect_gpu: str | None = None
    device_wait_seconds: NotNegative = 300.0
    lock_clocks_mhz: PositiveInt | None = None
    cuda_graphs: bool = True

    def __post_init__(self) -> None:
        if self.artifact == "native" and self.kind == "cuda":
            raise ValueError("artifact: native is for kind: llvm, write artifact: runtime")
        if self.algorithm != "auto" and self.kind == "cuda":
            raise ValueError("algorithm is for kind: llvm, remove it")


class CacheConfig(_Section, frozen=True, kw_only=True):
    """`url` is `s3://bucket/prefix` or a directory; reading order is `zone`, then `read-zones`.
    `trusted-keys` are the public keys that must have signed what stands in a zone."""

    url: str = DEFAULT_CACHE_URL
    endpoint_url: str | None = None
    region: str | None = None
    mode: Literal["off", "ro", "rw"] = "rw"
    zone: str = "main"
    read_zones: tuple[str, ...] = ("main", "rel")
    trusted_keys: dict[str, tuple[str, ...]] = {}


class BudgetConfig(_Section, frozen=True, kw_only=True):
    """The cap on tuning, and when it has done enough. The first limit reached stops it; what is
    about money needs `usd-per-hour`. A task ends after `trials-per-task`, unless what was expected
    of its candidates is contradicted. Gains are of the estimated end-to-end time."""

    minutes: NotNegative | None = 10.0
    usd: NotNegative | None = None
    trials: Annotated[int, msgspec.Meta(ge=0)] | None = None
    trials_per_task: Annotated[int, msgspec.Meta(ge=1)] | None = None
    usd_per_hour: NotNegative | None = None
    target_latency_ms: Positive | None = None
    min_gain_percent_per_minute: NotNegative = 0.5
    min_gain_percent_per_usd: NotNegative | None = None


class GateConfig(_Section, frozen=True, kw_only=True):
    """`margin-percent` is the slowdown that fails; `seconds` the measuring budget of one model
    on one target, `extend` whether it may be spent once more where that is likely to decide;
    `inconclusive` what an undecided gate does. More of an artifact's bytes, of the peak memory
    of the process that runs it, of what running adds to it, or of the energy of an inference,
    fails where it has a margin of its own. The mean and the tail (p90, p99) inside a launch may be
    slower by `tail-margin-percent`. Launches of the head that are slow only sometimes are looked
    for down to the share `rare-launches`, 0 for not at all. The election of what ships may take
    `election-share` of the seconds for more than one launch of each. Everything since the last tag
    like `release-tags` together may cost `release-margin-percent`. With `waiver-trailers` commits
    may hold waivers; `waivers-from` is the side whose waivers file counts. `policy-changes` is what
    a change does that loosens its own gate."""

    margin_percent: Annotated[float, msgspec.Meta(gt=0, le=100)] = 3.0
    waiver_trailers: bool = False
    seconds: Positive = 240.0
    extend: bool = True
    absolute_floor_us: NotNegative = 0.5
    inconclusive: Literal["fail", "warn"] = "fail"
    policy_changes: Literal["report", "fail"] = "report"
    waivers_from: Literal["base", "head"] = "base"
    pairs: Annotated[int, msgspec.Meta(ge=4, le=24)] = 12
    rare_launches: Annotated[float, msgspec.Meta(ge=0, le=0.5)] = 0.2
    election_share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.25
    tail_margin_percent: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 10.0
    size_margin_percent: NotNegative | None = None
    memory_margin_percent: NotNegative | None = None
    workspace_margin_percent: NotNegative | None = None
    energy_margin_percent: Annotated[float, msgspec.Meta(gt=0, le=1000)] | None = None
    release_margin_percent: Annotated[float, msgspec.Meta(gt=0, le=100)] = 5.0
    release_tags: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._/-]*\*?[A-Za-z0-9._/-]*$")] = (
        "v*"
    )


class WatchConfig(_Section, frozen=True, kw_only=True):
    """`files` are globs of lock files, requirements and Dockerfiles whose change gates all models
    with the packages of base and head. `indexes` are where packages come from, the first one before
    the others; without any it is PyPI, or what this machine says in its place."""

    files: tuple[str, ...] = ()
    indexes: tuple[Annotated[str, msgspec.Meta(pattern=r"^https?://[^\s]+$")], ...] = ()


class Config(_Section, frozen=True, kw_only=True):
    """`dims` are the sizes of dynamic dimensions by symbol, for all models. `executor` is where
    candidates are built and measured: on this machine, or on a Ray cluster."""

    models: Annotated[tuple[ModelConfig, ...], msgspec.Meta(min_length=1)]
    dims: Dims = {}
    targets: Annotated[tuple[TargetConfig, ...], msgspec.Meta(min_length=1)] = (
        TargetConfig(name="cpu"),
    )
    cache: CacheConfig = CacheConfig()
    budget: BudgetConfig = BudgetConfig()
    gate: GateConfig = GateConfig()
    watch: WatchConfig = WatchConfig()
    executor: Literal["local", "ray"] = "local"
