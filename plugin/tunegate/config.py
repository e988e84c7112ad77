"""The configuration: the one declaration of each key.

The reading of `tunegate.yaml` is in `review/config_file.py`, what a declaration says in
`config_key.py`.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec

from tunegate.config_key import NAME_PATTERN, URL_PATTERN, WHOLE, Key, larger, later, rarer, smaller

Positive = Annotated[float, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
PositiveInt = Annotated[int, msgspec.Meta(ge=1)]
Name = Annotated[str, msgspec.Meta(pattern=NAME_PATTERN)]

DEFAULT_CACHE_URL = "~/.cache/tunegate"
"""The user's own cache directory, wherever `system/cache/shared_cache.py` finds it."""


LOCAL = "local"
"""The executor on this machine. Others are found by the entry-point group `tunegate.workers`."""
AUTO = "auto"
"""The value of a target's key that leaves the choice to what is measured."""
RUNTIME_ARTIFACT: Final = "runtime"
"""The kind of artifact that is the file of the runtime that ships."""
Algorithm = Literal["auto", "direct", "im2col", "group-vectors"]
"""The form of convolutions."""


class _Section(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """A mapping of the file: kebab-case keys, unknown keys refused."""


class ObjectiveConfig(_Section, frozen=True, kw_only=True):
    """An absolute limit on latency."""

    ms: Annotated[
        Positive,
        Key("the milliseconds that an inference may take", unit="milliseconds", stricter=smaller),
    ]
    percentile: Annotated[
        float,
        msgspec.Meta(gt=0, lt=100),
        Key(
            "the share of inferences, in percent, that must take no longer",
            unit="percent",
            stricter=larger,
        ),
    ] = 99.0


class MetricCommandConfig(_Section, frozen=True, kw_only=True):
    """A command that tells how wrong the outputs are on each input."""

    run: Annotated[
        str,
        msgspec.Meta(min_length=1),
        Key("the command line, without a shell. It gets a directory as its last argument"),
    ]
    at_most: Annotated[
        float,
        msgspec.Meta(ge=0, le=1e12),
        Key("the largest number of it that is allowed, in its own unit", stricter=smaller),
    ]


class AccuracyConfig(_Section, frozen=True, kw_only=True):
    """The accuracy budget of builds in lower precision, in percent: `max-error` is of the largest
    output, `min-agreement` the share of inputs whose largest output is the same. Or by the user's
    own `metric-command`."""

    max_error: Annotated[
        Annotated[float, msgspec.Meta(gt=0, le=100)] | None,
        Key(
            "the error that is allowed, in percent of the largest magnitude of an output",
            unit="percent",
            stricter=smaller,
        ),
    ] = None
    min_agreement: Annotated[
        Annotated[float, msgspec.Meta(gt=0, le=99.9)] | None,
        Key(
            "the percentage of inputs whose largest output must be in the same place",
            unit="percent",
            stricter=larger,
        ),
    ] = None
    metric_command: Annotated[
        MetricCommandConfig | None,
        Key(
            "[a command of yours](how-to/accuracy.md#a-metric-of-your-own) that prints how "
            "wrong the "
            "outputs are: `{run: python tools/wer.py, at-most: 0.02}`. Both keys are needed"
        ),
    ] = None

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
"""The size of a dimension. With 0 a tensor has no numbers, such as a past that is still empty."""
InputShape = tuple[Size, ...]
Scalar = bool | int | float | str


class ValuesConfig(_Section, frozen=True, kw_only=True):
    """The values of an input: numbers from `low` to `high`, the content of a `file`, one of the
    `cases`, or a `sequence` with the tensor of each file. Exactly one of the four is given."""

    low: Annotated[int | float | None, Key("the smallest number")] = None
    high: Annotated[int | float | None, Key("the largest number")] = None
    file: Annotated[
        str | None,
        Key(
            "a `.npy`, `.npz` or `.pb` of the repository, or an absolute path on the runner "
            "([details](how-to/models.md#inputs))"
        ),
    ] = None
    cases: Annotated[
        tuple[Scalar, ...],
        Key("a list of [cases](how-to/models.md#inputs): files, or numbers that fill the input"),
    ] = ()
    sequence: Annotated[
        tuple[str, ...] | None,
        Key(
            "the files of a [sequence](how-to/models.md#sequences-and-optional-inputs), one for "
            "each "
            "tensor"
        ),
    ] = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it names."""
        entries = (self.file, *self.cases, *(self.sequence or ()))
        return tuple(each for each in entries if isinstance(each, str))


class InputConfig(_Section, frozen=True, kw_only=True):
    """The settings of one input. Its `shape` may be missing where the symbols of its dimensions are
    given."""

    shape: Annotated[InputShape | None, Key("the whole shape")] = None
    values: Annotated[
        ValuesConfig | None,
        Key(
            "what the input is fed with: numbers from `low` to `high`, a `file`, `cases`, or a "
            "`sequence`",
            default="from the graph",
        ),
    ] = None


Inputs = Mapping[str, InputShape | InputConfig]
"""Maps names of inputs to a shape alone, or to a shape and values."""
Dims = dict[str, Size]
"""The symbol of a dynamic dimension -> its size."""


class ProfileConfig(_Section, frozen=True, kw_only=True):
    """A profile of a model."""

    dims: Annotated[Dims, Key("the sizes that the profile adds to its entry, or says instead")] = {}
    inputs: Annotated[
        Inputs, Key("the inputs that the profile adds to its entry, or says instead")
    ] = {}


class ModelConfig(_Section, frozen=True, kw_only=True):
    """One entry of `models`."""

    path: Annotated[
        str,
        Key(
            "glob over the files of the revision; the first entry that matches a model counts. "
            "With `{version}` for a number in it, a new version is compared with the one "
            "that the base serves ([versions](how-to/models.md#numbered-versions))"
        ),
    ]
    dims: Annotated[
        Dims,
        Key(
            "`symbol: size` of dynamic dimensions of this entry. It counts before that of the file"
        ),
    ] = {}
    inputs: Annotated[Inputs, Key("input name to its whole shape, or to what follows")] = {}
    profiles: Annotated[
        dict[str, ProfileConfig],
        Key(
            "`name: {dims, inputs}`: the model is gated once for each; see "
            "[profiles](how-to/models.md#profiles)"
        ),
    ] = {}
    targets: Annotated[tuple[str, ...], Key("names of targets", default="all")] = ()
    objective: Annotated[
        ObjectiveConfig | None,
        Key(
            "an absolute limit: `percentile` (99) percent of inferences must take no longer "
            "than `ms`"
        ),
    ] = None
    accuracy: Annotated[
        Accuracy,
        Key(
            "`same`: builds compute in float32. A mapping is a budget for builds in other "
            "numbers ([accuracy](how-to/accuracy.md)): `max-error` and `min-agreement`, in "
            "percent, "
            "and `metric-command`"
        ),
    ] = "same"


class TargetConfig(_Section, frozen=True, kw_only=True):
    """One place to run."""

    name: Annotated[Name, Key("appears in reports and file names")]
    kind: Annotated[Literal["llvm", "cuda"], Key("`llvm` or `cuda`")] = "llvm"
    cpu: Annotated[str, Key("microarchitecture, for `llvm`")] = "native"
    arch: Annotated[str, Key("compute capability, for `cuda`")] = "native"
    threads: Annotated[
        int,
        msgspec.Meta(ge=0, le=1024),
        Key(
            "threads that tuning, building and measuring use; 0: every usable core but one, "
            "which the rest of the machine keeps"
        ),
    ] = 0
    layout: Annotated[
        Literal["auto", "nchw", "nhwc"],
        Key(
            "of images inside the model: `nhwc`, `nchw` (as it was imported), or `auto`: `nhwc`"
            " on CPUs, and `nchw` for a model that [cannot be "
            "built](runtimes.md#what-tvm-builds)"
            " with it. Transposed convolutions and the inputs and outputs stay as they are, and"
            " so does a model with an operator that the compiler cannot turn, such as `Max`"
        ),
    ] = "auto"
    algorithm: Annotated[
        Algorithm,
        Key(
            "the form of convolutions that TVM builds: `direct` (never Winograd's), `im2col` (a "
            "matrix product over the unfolded image), `group-vectors` (steps over vectors of "
            "groups), or `auto`: the search measures those that a layer has. A layer that lacks "
            "the form keeps its own. For CPUs; [a study](../plugin/extras/study/README.md) tells "
            "what each costs"
        ),
    ] = "auto"
    runtime: Annotated[
        Name,
        Key(
            "`tvm`, `onnxruntime` (CPUs; needs no TVM and tunes nothing), "
            "[`openvino`](runtimes.md) (CPUs; an extra), "
            "[`onnxruntime_cuda` and `tensorrt`](runtimes.md#onnx-runtime-and-tensorrt-on-gpus) "
            "(GPUs), [another that is installed](how-to/extend.md), or `auto`: all that run "
            "on the target are built and measured, and the fastest ships"
        ),
    ] = AUTO
    artifact: Annotated[
        Literal["runtime", "native"],
        Key(
            "`runtime`: the file of the runtime that ships; `native` (CPUs): one shared object "
            "with a C header, which [needs no runtime](../plugin/extras/whole_model/README.md) "
            "(an extra)"
        ),
    ] = "runtime"
    runner: Annotated[tuple[str, ...], Key("labels for the CI matrix")] = ("self-hosted",)
    usd_per_hour: Annotated[
        NotNegative | None,
        Key("price of the runner; needed by `budget.usd`", unit="US dollars", may_fill=True),
    ] = None
    expect_gpu: Annotated[
        str | None,
        Key(
            "words of the GPU's name, such as `L4` or `H100 80GB`: on another one nothing is "
            "measured, exit code 4",
            may_fill=True,
        ),
    ] = None
    device_wait_seconds: Annotated[
        NotNegative,
        Key("how long a GPU that others use is waited for, before exit code 4", unit="seconds"),
    ] = 300.0
    lock_clocks_mhz: Annotated[
        PositiveInt | None,
        Key(
            "the GPU's clock is locked there while something is measured, where the machine "
            "permits it, and freed whatever ends the run",
            unit="MHz",
        ),
    ] = None
    cuda_graphs: Annotated[
        bool,
        Key(
            "kernels between input and output are captured once and launched as one; a build "
            "that does not run so is made again without"
        ),
    ] = True

    def __post_init__(self) -> None:
        if self.artifact == "native" and self.kind == "cuda":
            raise ValueError("artifact: native is for kind: llvm, write artifact: runtime")
        if self.algorithm != "auto" and self.kind == "cuda":
            raise ValueError("algorithm is for kind: llvm, remove it")


class CacheConfig(_Section, frozen=True, kw_only=True):
    """The cache of tuning results, and the zones whose records count."""

    url: Annotated[
        str,
        Key(
            "`s3://bucket/prefix` or a directory. A relative one lies under the repository. The"
            " default stands for `$XDG_CACHE_HOME/tunegate` where that variable is set and "
            "nothing is in `~/.cache/tunegate` yet. [Other stores](how-to/extend.md#a-store) "
            "can be "
            "installed",
            flag="--cache-url",
            metavar="URL",
            is_input=True,
        ),
    ] = DEFAULT_CACHE_URL
    endpoint_url: Annotated[
        str | None,
        Key(
            "the address of an S3 server that is not Amazon's",
            flag="--cache-endpoint-url",
            metavar="URL",
            is_input=True,
        ),
    ] = None
    region: Annotated[str | None, Key("the region of the S3")] = None
    sse: Annotated[
        Literal["AES256", "aws:kms", "aws:kms:dsse"] | None,
        Key(
            "how the S3 encrypts what is written, for buckets that refuse what does not ask for it"
        ),
    ] = None
    sse_kms_key: Annotated[
        str | None, Key("the key of `sse: aws:kms`, as an ARN or an id; Amazon's own without it")
    ] = None
    mode: Annotated[
        Literal["off", "ro", "rw"],
        Key("no cache (`off`), read only (`ro`), or read and write (`rw`)", flag="--cache-mode"),
    ] = "rw"
    zone: Annotated[
        str,
        Key(
            "the part of the cache that this run writes. The zone of the file is read and "
            "trusted, too",
            flag="--zone",
            metavar="NAME",
        ),
    ] = "main"
    read_zones: Annotated[
        tuple[str, ...],
        Key(
            "the zones whose records are trusted. A zone that only `--zone` names is not: see "
            "[whose records count](how-caching-works.md#whose-records-count)"
        ),
    ] = ("main", "rel")
    trusted_keys: Annotated[
        dict[str, tuple[str, ...]],
        Key(
            "`zone: [ed25519:...]`: who must have signed what stands in a zone; see [how "
            "caching works](how-caching-works.md)"
        ),
    ] = {}


class BudgetConfig(_Section, frozen=True, kw_only=True):
    """The budget of tuning, and its goals. Gains are of the estimated end-to-end time."""

    minutes: Annotated[
        NotNegative | None,
        Key(
            "the cap on the wall-clock time of tuning, without building and measuring",
            unit="minutes",
            flag="--minutes",
            is_input=True,
        ),
    ] = 10.0
    usd: Annotated[
        NotNegative | None,
        Key(
            "the cap on the cost of tuning. It is at the price of the target or "
            "`budget.usd-per-hour`",
            unit="US dollars",
            flag="--usd",
            is_input=True,
        ),
    ] = None
    trials: Annotated[
        Annotated[int, msgspec.Meta(ge=0)] | None,
        Key(
            "the cap on the number of measured candidates",
            unit="trials",
            flag="--trials",
            is_input=True,
        ),
    ] = None
    trials_per_task: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        Key(
            "measured candidates of each task; with `8` one batch, then it is finished. A task "
            "goes on where the times contradict [what was "
            "expected](how-tuning-works.md#few-trials-for-each-task)"
        ),
    ] = None
    usd_per_hour: Annotated[
        NotNegative | None,
        Key("the price of every runner that has none of its own", unit="US dollars"),
    ] = None
    target_latency_ms: Annotated[
        Positive | None,
        Key(
            "fast enough: tuning stops when every model is estimated at or below it",
            unit="milliseconds",
        ),
    ] = None
    min_gain_percent_per_minute: Annotated[
        NotNegative,
        Key("what tuning must be expected to save of the end-to-end time to go on", unit="percent"),
    ] = 0.5
    min_gain_percent_per_usd: Annotated[
        NotNegative | None,
        Key("the same for its money; the stricter of the two counts", unit="percent"),
    ] = None


class GateConfig(_Section, frozen=True, kw_only=True):
    """The rules of the gate, and the effort of measuring."""

    margin_percent: Annotated[
        float,
        msgspec.Meta(gt=0, le=100),
        Key(
            "the slowdown that fails",
            unit="percent",
            stricter=smaller,
            flag="--margin-percent",
            metavar="PERCENT",
            also="release_margin_percent",
        ),
    ] = 3.0
    waiver_trailers: Annotated[
        bool,
        Key(
            "commits of a pull request may waive its slowdown by a `Tunegate-Waiver` trailer",
            stricter=smaller,
        ),
    ] = False
    seconds: Annotated[
        Positive,
        Key(
            "the time for the paired launches of one model on one target. The short launches "
            "that [a pass needs](how-the-gate-decides.md#slow-only-sometimes) may take twice as "
            "long again, or a minute",
            unit="seconds",
            flag="--gate-seconds",
            is_input=True,
        ),
    ] = 240.0
    extend: Annotated[
        bool,
        Key("an undecided gate may spend its seconds once more, where that is likely to decide it"),
    ] = True
    absolute_floor_us: Annotated[
        NotNegative, Key("a slowdown must also exceed this", unit="microseconds", stricter=smaller)
    ] = 0.5
    inconclusive: Annotated[
        Literal["fail", "warn"],
        Key("`warn` lets an undecided gate pass", stricter=later("warn", "fail")),
    ] = "fail"
    policy_changes: Annotated[
        Literal["report", "fail"],
        Key(
            "`fail` makes a change fail that loosens its own gate; see [who decides](#who-decides)",
            stricter=later("report", "fail"),
        ),
    ] = "report"
    waivers_from: Annotated[
        Literal["base", "head"],
        Key(
            "whose `tunegate-waivers.yaml` counts: with `head` a change may bring its own "
            "waiver, for teams with code owners",
            stricter=later("head", "base"),
        ),
    ] = "base"
    pairs: Annotated[
        int,
        msgspec.Meta(ge=4, le=24),
        Key("block pairs of a launch, before they are planned by the noise"),
    ] = 12
    min_launches: Annotated[
        int,
        msgspec.Meta(ge=4, le=60),
        Key(
            "the fewest launches of each side before a verdict may pass. Seconds that pay for "
            "fewer leave it inconclusive; a slowdown fails as soon as it is clear",
            stricter=larger,
            flag="--min-launches",
        ),
    ] = 4
    rare_launches: Annotated[
        float,
        msgspec.Meta(ge=0, le=0.5),
        Key(
            "the rarest share of slow launches that a pass must exclude; [rarer ones cost "
            "more](how-the-gate-decides.md#slow-only-sometimes), `0` looks for none",
            stricter=rarer,
        ),
    ] = 0.2
    election_share: Annotated[
        float,
        msgspec.Meta(ge=0, le=1),
        Key(
            "the share of `gate.seconds` that the choice between candidates may take for more "
            "than one launch of each, on both sides together, 60 s at most"
        ),
    ] = 0.25
    tail_margin_percent: Annotated[
        float,
        msgspec.Meta(gt=0, le=1000),
        Key(
            "the slowdown of the mean, the p90 and the p99 of the inferences that fails; a wider "
            "`margin-percent` does not widen it",
            unit="percent",
            stricter=smaller,
            flag="--tail-margin-percent",
            metavar="PERCENT",
        ),
    ] = 10.0
    size_margin_percent: Annotated[
        NotNegative | None,
        Key("a larger artifact fails from here on", unit="percent", stricter=smaller),
    ] = None
    memory_margin_percent: Annotated[
        NotNegative | None,
        Key(
            "a larger peak of resident memory fails from here on", unit="percent", stricter=smaller
        ),
    ] = None
    workspace_margin_percent: Annotated[
        NotNegative | None,
        Key(
            "more memory that running adds to the loaded artifact fails from here on",
            unit="percent",
            stricter=smaller,
        ),
    ] = None
    energy_margin_percent: Annotated[
        Annotated[float, msgspec.Meta(gt=0, le=1000)] | None,
        Key(
            "more joules of one inference fail from here on, by [RAPL or "
            "NVML](how-the-gate-decides.md#energy); "
            "without counters the gate is `invalid-env`",
            unit="percent",
            stricter=smaller,
        ),
    ] = None
    load_margin_percent: Annotated[
        Annotated[float, msgspec.Meta(gt=0, le=1000)] | None,
        Key(
            "more [time to load](how-the-gate-decides.md#time-to-load) fails from here on",
            unit="percent",
            stricter=smaller,
        ),
    ] = None
    layers_margin_percent: Annotated[
        Annotated[float, msgspec.Meta(gt=0, le=1000)] | None,
        Key(
            "what [the layers that differ](how-the-gate-decides.md#the-layers-that-differ) add to "
            "the model fails from here on, far below what the whole model's time tells; up to "
            "`gate.seconds` more",
            unit="percent",
            stricter=smaller,
        ),
    ] = None
    release_margin_percent: Annotated[
        float,
        msgspec.Meta(gt=0, le=100),
        Key(
            "the margin of `--since-release`: what everything since the last release together "
            "may cost",
            unit="percent",
            stricter=smaller,
        ),
    ] = 5.0
    release_tags: Annotated[
        str,
        msgspec.Meta(pattern=r"^[A-Za-z0-9._/-]*\*?[A-Za-z0-9._/-]*" + WHOLE),
        Key("what release tags are called, with one `*` at most"),
    ] = "v*"


class WatchConfig(_Section, frozen=True, kw_only=True):
    """The files that decide what runs the models."""

    files: Annotated[
        tuple[str, ...],
        Key(
            "globs of lock files, requirements and Dockerfiles: a change of one gates all "
            "models with the packages of base and head; one that matches no committed file is "
            "told (the extra [upgrades](../plugin/extras/upgrades/README.md))"
        ),
    ] = ()
    indexes: Annotated[
        tuple[Annotated[str, msgspec.Meta(pattern=URL_PATTERN)], ...],
        Key(
            "where these packages come from, the first one before the others; without the key "
            "`PIP_INDEX_URL` or uv's variables on the runner may name another place",
            default="PyPI",
        ),
    ] = ()


class OperatorLibraryConfig(_Section, frozen=True, kw_only=True):
    """A library with operators that ONNX Runtime does not bring."""

    library: Annotated[
        str,
        msgspec.Meta(pattern=r"^(/.+|[A-Za-z_][A-Za-z0-9_]*)" + WHOLE),
        Key("a package beside tunegate, such as `onnxruntime_extensions`, or an absolute path"),
    ]
    sha256: Annotated[
        str,
        msgspec.Meta(pattern=r"^[0-9a-f]{64}" + WHOLE),
        Key("the digest of the library's file; another file is not loaded"),
    ]


class Config(_Section, frozen=True, kw_only=True):
    """The whole file."""

    models: Annotated[
        Annotated[tuple[ModelConfig, ...], msgspec.Meta(min_length=1)],
        Key("the models that are gated: one entry or more", default="–"),
    ]
    dims: Annotated[
        Dims,
        Key(
            "`symbol: size` of dynamic dimensions, for all models; see "
            "[shapes](how-to/models.md#shapes)"
        ),
    ] = {}
    targets: Annotated[
        Annotated[tuple[TargetConfig, ...], msgspec.Meta(min_length=1)],
        Key("the kinds of machine that models are deployed on", default="`cpu`"),
    ] = (TargetConfig(name="cpu"),)
    cache: Annotated[CacheConfig, Key("where tuning results are shared")] = CacheConfig()
    budget: Annotated[BudgetConfig, Key("what tuning may cost; it stops at the first limit")] = (
        BudgetConfig()
    )
    gate: Annotated[GateConfig, Key("what fails, and how hard it is tried to find out")] = (
        GateConfig()
    )
    watch: Annotated[WatchConfig, Key("which files decide what runs the models")] = WatchConfig()
    custom_operators: Annotated[
        tuple[OperatorLibraryConfig, ...],
        Key(
            "libraries that ONNX Runtime loads for models that [use their "
            "operators](how-to/models.md#custom-operators)"
        ),
    ] = ()
    executor: Annotated[
        Name,
        Key(
            "where candidates are built and measured: `local`, or `ray`, the cluster of "
            "`RAY_ADDRESS` (the extra `ray`)"
        ),
    ] = LOCAL
