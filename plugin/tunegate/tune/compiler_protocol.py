"""Messages between the coordinator and the compiler of whole models. No TVM here."""

import os
from pathlib import Path

import msgspec

from tunegate.artifacts.builds import BuiltTask, NumericCheck, SampledErrors, WrongKernel
from tunegate.artifacts.candidates import FLOAT32, LAUNCH, PRECISION
from tunegate.artifacts.inputs import NOTHING_KNOWN, DrawnInput, KnownInputs
from tunegate.artifacts.tasks import TuningTask
from tunegate.config import TargetConfig
from tunegate.tune.protocol import Failed, ModelFile
from tunegate_cache.format.how_built import HowBuilt
from tunegate_cache.format.records import TuningRecord


class ListTasks(msgspec.Struct, frozen=True, tag="tasks", kw_only=True):
    model: ModelFile
    target: TargetConfig
    scratch: str


class BuildModel(msgspec.Struct, frozen=True, tag="build", kw_only=True):
    """Transferred schedules are tried in the model, on the inputs of `seed`; those of the workloads
    in `settled` stay as they are. A build that is known by its `how` tries nothing; `decided` are
    marks of choices that the build of the other side has made for a form.

    With `cuda_graphs` the kernels of a GPU are launched as one; `launch` is how a form launches
    them, '' for the usual way. `variant` is the name of the candidate, and `precision` the numbers
    that it computes in. With `keeps_constants` default schedules pack no weights."""

    model: ModelFile
    target: TargetConfig
    records: dict[str, tuple[TuningRecord, ...]]
    sources: dict[str, str]
    directory: str
    scratch: str
    seed: int
    cuda_graphs: bool = False
    inputs: KnownInputs = NOTHING_KNOWN
    settled: tuple[str, ...] = ()
    how: HowBuilt | None = None
    decided: tuple[int, ...] = ()
    variant: str = ""
    precision: str = FLOAT32
    launch: str = ""
    keeps_constants: bool = False

    @property
    def settings(self) -> dict[str, str]:
        """The candidate's settings, as its artifact has them."""
        lower = {PRECISION: self.precision} if self.precision != FLOAT32 else {}
        return {**lower, LAUNCH: self.launch} if self.launch else lower


class Tasks(msgspec.Struct, frozen=True, tag="tasks"):
    """The tuning tasks of a model."""

    tasks: tuple[TuningTask, ...]


class BuiltFunction(BuiltTask, frozen=True, kw_only=True):
    """A task as it was built: `name` is what reports call it, `function` what the module does."""

    function: str

    def as_task(self) -> BuiltTask:
        """Returns what reports and artifacts say of it."""
        return BuiltTask(**{name: getattr(self, name) for name in BuiltTask.__struct_fields__})


class Built(msgspec.Struct, frozen=True, tag="built", kw_only=True):
    """`reference` is the ONNX file whose outputs the build must have; `dropped` are labels of what
    was slower in the model than the default schedule; times decided `how`."""

    key: str
    reference: str
    functions: tuple[BuiltFunction, ...]
    size_bytes: int
    seconds: float
    dropped: tuple[str, ...] = ()
    inputs: tuple[DrawnInput, ...] = ()
    how: HowBuilt = HowBuilt()


CompileRequest = ListTasks | BuildModel
CompileReply = Tasks | Built | Failed


# The kernel that a child tries in a model. One that dies of it, or hangs, cannot say so itself.

_RUNNING_KERNEL = "running-kernel"
_DIGEST_BYTES = 64


class RunningKernel:
    """Names the workload that is run in a file in `scratch`, the private directory of a request.
    That takes microseconds, outside of what is timed."""

    def __init__(self, scratch: Path) -> None:
        self._file = (scratch / _RUNNING_KERNEL).open("wb", buffering=0)

    def note(self, workload: str) -> None:
        """'' where none of those runs that are tried."""
        os.pwrite(self._file.fileno(), workload.ljust(_DIGEST_BYTES).encode(), 0)

    def close(self) -> None:
        self._file.close()


def running_kernel(scratch: Path) -> str:
    """Returns the workload that a child ran when it ended; '' where that is not known."""
    try:
        return (scratch / _RUNNING_KERNEL).read_text().strip()
    except OSError:
        return ""


# Messages between the coordinator and the child that checks a compiled model.


class CheckArtifact(msgspec.Struct, frozen=True, tag="check", kw_only=True):
    """`reference` is the ONNX file that ONNX Runtime runs; `kind` is the target's; `seeds` make the
    inputs. With `samples` those of these seeds tell how far a build in other numbers is off, and
    nothing is checked; what both computed is kept in the directory `cases`, if there is one."""

    directory: str
    reference: str
    kind: str
    seeds: tuple[int, ...]
    samples: tuple[int, ...] = ()
    cases: str = ""


class Checked(msgspec.Struct, frozen=True, tag="checked"):
    """`check` is None where this machine has no device to run it on."""

    check: NumericCheck | None = None
    sampled: SampledErrors | None = None


class MendBuild(msgspec.Struct, frozen=True, tag="mend", kw_only=True):
    """A request to find the kernels of the last build that fail its check, and to build it again
    without their schedules, within the time."""

    build: BuildModel
    check: CheckArtifact
    limit_seconds: float


class Mended(msgspec.Struct, frozen=True, tag="mended", kw_only=True):
    """`built` is the build with default schedules for the `wrong` kernels, and `check` what it
    passed. Without them `reason` says why there is none; `is_late` that time was the reason."""

    built: Built | None = None
    check: NumericCheck | None = None
    wrong: tuple[WrongKernel, ...] = ()
    reason: str = ""
    is_late: bool = False


CheckReply = Checked | Mended | Failed
