"""Messages between the coordinator and its children. No TVM here."""

from __future__ import annotations

import statistics

import msgspec

from tunegate.artifacts.tasks import ScheduleSource
from tunegate.config import TargetConfig
from tunegate.system.machine.device_lock import Claim
from tunegate.tune.candidate_filter import Reason
from tunegate.tune.prior import Sketch
from tunegate_cache.format.records import Decision, RecordStatus


class ModelFile(msgspec.Struct, frozen=True, kw_only=True):
    """A model to open: the file, what to call it, and the shapes of its dynamic inputs."""

    file: str
    path: str
    shapes: dict[str, tuple[int, ...]]


class Schedule(msgspec.Struct, frozen=True):
    """The decisions of one candidate and the template they belong to. The default schedule has
    neither."""

    template: str
    decisions: tuple[Decision, ...]


DEFAULT = Schedule("", ())


class TensorArgument(msgspec.Struct, frozen=True):
    shape: tuple[int, ...]
    dtype: str


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One scheduled module, serialized for the workers of this run only. `expected` is the prior's
    prediction, larger is better, None if it has none."""

    number: int
    workload: str
    origin: ScheduleSource
    reason: Reason = "random"
    expected: float | None = None
    schedule: Schedule
    module: str
    arguments: tuple[TensorArgument, ...]


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a candidate. `nanoseconds` is empty unless `status` is `ok`. `unfit` says why
    the machine, not the candidate, is at fault. `waited_seconds` of the `run_seconds` were spent
    waiting for the device. `has_killed_worker`: the worker's process died of it. `from_outside`: it
    failed for a lack of memory, or was killed, and may run another time."""

    number: int
    status: RecordStatus
    nanoseconds: tuple[int, ...] = ()
    build_seconds: float = 0.0
    run_seconds: float = 0.0
    waited_seconds: float = 0.0
    detail: str = ""
    unfit: str = ""
    has_killed_worker: bool = False
    from_outside: bool = False

    @property
    def median_ms(self) -> float:
        """The median time of a candidate that ran."""
        return statistics.median(self.nanoseconds) / 1e6


# to the searcher ------------------------------------------------------------


class OpenModels(msgspec.Struct, frozen=True, tag="open"):
    """Candidates are numbered from `first_number` on, as those of an earlier child may be out."""

    models: tuple[ModelFile, ...]
    target: TargetConfig
    directory: str
    seed: int
    filters: bool = True
    first_number: int = 1


class Propose(msgspec.Struct, frozen=True, tag="propose", kw_only=True):
    """`results` are of earlier candidates of this task. `seeds` are tried once before any search.
    `failed` schedules are known not to work here. `known` are schedules that this run measured
    while another child searched, with their milliseconds."""

    workload: str
    count: int
    seeds: tuple[tuple[ScheduleSource, Schedule], ...] = ()
    failed: tuple[Schedule, ...] = ()
    known: tuple[tuple[Schedule, float], ...] = ()
    results: tuple[Measured, ...] = ()


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    workloads: tuple[str, ...]
    target_json: str


class Proposed(msgspec.Struct, frozen=True, tag="proposed"):
    """`exhausted`: nothing is new for this task. `misfits` counts seeds that do not apply, even
    refitted. `seconds` were spent. `sketches` are those of its templates."""

    workload: str
    candidates: tuple[Candidate, ...]
    exhausted: bool
    misfits: int = 0
    seconds: float = 0.0
    sketches: dict[str, Sketch] = {}


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The reason for a failed request. `model`: the model is at fault, not the machine. `compiler`:
    the model is valid, the compiler refuses it. `configuration`: something asked for does not
    exist. `memory`: the child lacked memory that another may have. `room`: a disk was full.
    `reference`: the model does not run under ONNX Runtime, whose numbers are the reference. `died`:
    a process that the child needed died, and another run may find otherwise."""

    reason: str
    model: bool
    compiler: bool = False
    configuration: bool = False
    memory: bool = False
    room: bool = False
    died: bool = False
    reference: bool = False


SearchRequest = OpenModels | Propose
SearchReply = Opened | Proposed | Failed


# to a worker ----------------------------------------------------------------


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """Build and time one candidate. `reference` is a file of the expected output: the default
    schedule writes it, the others are compared with it. Slower than `loser_ms`, one repeat is
    enough. At most `at_once` candidates are timed side by side on the worker's device; with `alone`
    none, in any slot. Building, and measuring once the device is held, may each take
    `patience_seconds`. The pool fills in `place`. Inputs come from the run's `seed`."""

    candidate: Candidate
    target_json: str
    reference: str
    writes_reference: bool
    loser_ms: float
    repeats: int
    seed: int
    repeat_ms: int = 30
    at_once: int = 1
    alone: bool = False
    patience_seconds: float | None = None
    place: Placement | None = None

    @property
    def watched_seconds(self) -> float | None:
        """The seconds after which the worker ends itself: the shorter of the candidate's patience
        and its place's."""
        place = None if self.place is None else self.place.measuring_seconds
        limits = [limit for limit in (self.patience_seconds, place) if limit is not None]
        return min(limits, default=None)


# The place of one worker: the slots of its device, and its limits.


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """A slot, held while timing. Where several are used at once, each has its own cores."""

    claim: Claim
    cores: tuple[int, ...] = ()


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """The place of one worker: the slots of its device, and variables for its process. Building,
    and measuring once the device is held, may each take `measuring_seconds`; all of it,
    `limit_seconds`. With `has_kernel_clock` the device itself tells how long kernels took."""

    slots: tuple[Slot, ...]
    variables: dict[str, str] = {}
    measuring_seconds: float | None = None
    limit_seconds: float
    has_kernel_clock: bool = False

    @property
    def device(self) -> Claim:
        """Returns the claim that distinguishes this device from others."""
        return self.slots[0].claim
