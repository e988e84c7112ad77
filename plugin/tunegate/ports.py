"""Protocols of what a run needs from the outside. The implementations are in `system/`, `models/`,
`measure/` and the runtimes; tests use fakes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

import msgspec

from tunegate.artifacts import changes
from tunegate.artifacts.builds import Build
from tunegate.artifacts.histogram import Histogram
from tunegate.artifacts.inputs import NOTHING_KNOWN, GivenFor, GivenRules, KnownInputs, ShapedModel
from tunegate.artifacts.measurements import Launch, LayersLaunch
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import EnergySource, ExpectedStep, Shard, StepKind
from tunegate.artifacts.tasks import CacheUse, ScheduleSource, TuningTask
from tunegate.config import TargetConfig
from tunegate.errors import ModelError
from tunegate_cache.format.how_built import HowBuilt
from tunegate_cache.format.records import (
    DeviceFingerprint,
    ExactHit,
    Lookup,
    TransferHit,
    TuningRecord,
    WorkloadKey,
    WorkloadShape,
)

Shapes = Mapping[str, tuple[int, ...]]
"""Input name -> full shape, for the inputs whose shape the model leaves open."""

NOTHING_LISTED: Mapping[int, Sequence[TuningTask]] = MappingProxyType({})

ReadInputs = Callable[[Path], Sequence[changes.ModelInput] | None]
"""Returns the inputs of a model file, None if it cannot be read."""

ReadValues = Callable[[Path, GivenFor], GivenRules]
"""Reads the given values of a model's inputs in a file, as rules."""


class InputReaders(NamedTuple):
    """Read the inputs of model files. `values_into` reads the given values, and keeps arrays in a
    directory."""

    inputs: ReadInputs
    values_into: Callable[[Path], ReadValues]


Publish = Callable[[Sequence[TuningRecord]], bool]
"""Hands finished records to the cache. Returns False if they could not be stored now."""


class Clock(Protocol):
    def monotonic(self) -> float: ...
    def time(self) -> float: ...


class TreeEntry(msgspec.Struct, frozen=True):
    """One entry of a revision. `blob` is git's id of its content, for a submodule the commit."""

    path: str
    blob: str
    kind: Literal["file", "link", "submodule"] = "file"


class Trailer(msgspec.Struct, frozen=True):
    """`Key: value` at the end of a commit's message."""

    commit: str
    value: str


class Repository(Protocol):
    """A git repository.

    **Revisions.** `revisions` turns any revision text into full commit ids, or raises
    `RevisionError` naming it.

    **Reading** needs no second checkout and never changes the working tree. Blobs that are missing
    locally (a shallow or blobless clone) are fetched. `data` resolves LFS pointers. `trailers` are
    those of the commits between `base` and `head`, newest first; `may_fetch` allows fetching
    history for them.
    """

    def revisions(self, base: str | None, head: str | None) -> changes.Revisions: ...
    def files(self, revision: str) -> Sequence[TreeEntry]: ...
    def read(self, revision: str, path: str) -> bytes: ...
    def trailers(
        self, base: str, head: str, key: str, *, may_fetch: bool = True
    ) -> Sequence[Trailer]: ...
    def data(self, revision: str, path: str, most_bytes: int) -> bytes: ...
    def export_model(self, version: changes.ModelVersion, into: Path) -> Path: ...


class ModelReader(Protocol):
    """Reads the models of a revision, without compiling any.

    **Cheap first.** `models` looks at names, sizes and pointers only; its `external` stands for all
    that may be a model's data. The others read the bytes. `with_data_files` returns the version
    with the data files that it names, `with_digest` adds its graph digest. A version that cannot be
    read comes back unchanged with the reason, never as an exception. `earlier` is the version
    before the last change of its file, and its age in commits. `outline` is None where the bytes
    cannot be read. `obstacle` names a submodule, a link or a directory in the place of a file.
    `blob` is git's id of any file's content. '' is nothing. `submodules` are their commits, by
    path. `unread_outputs` are DVC's outputs that differ between two revisions and are not read: by
    path, or by stage, with what each is. `unlisted_version` is the version of a path that may be in
    a directory of DVC's without a listing here, so that nothing can be read of it; None elsewhere.
    """

    def models(self, revision: str) -> Mapping[changes.ModelPath, changes.ModelVersion]: ...
    def earlier(self, version: changes.ModelVersion) -> tuple[changes.ModelVersion, int] | None: ...
    def with_data_files(
        self, version: changes.ModelVersion
    ) -> tuple[changes.ModelVersion, str]: ...
    def with_digest(self, version: changes.ModelVersion) -> tuple[changes.ModelVersion, str]: ...
    def outline(self, version: changes.ModelVersion) -> changes.ModelOutline | None: ...
    def obstacle(self, revision: str, path: changes.ModelPath) -> str: ...
    def blob(self, revision: str, path: str) -> str: ...
    def submodules(self, revision: str) -> Mapping[str, str]: ...
    def unread_outputs(self, base: str | None, head: str) -> Mapping[str, str]: ...
    def unlisted_version(
        self, revision: str, path: changes.ModelPath
    ) -> changes.ModelVersion | None: ...


class RecordQueue(Protocol):
    """Takes records out of a tuning run. Never raises."""

    def enqueue(self, records: Sequence[TuningRecord]) -> bool:
        """Takes records as `publish` does, without waiting for the store: on return they are safe
        on this machine and on their way. Returns False if they will not be stored."""
        ...

    def flush(self, seconds: float) -> int:
        """Waits up to `seconds`, and returns the number of queued records that are not stored
        yet."""
        ...


class TaskIndex(RecordQueue, Protocol):
    """The shared cache as a run sees it. Never raises: trouble is a counted miss and a note.
    `lookup` answers from trusted zones."""

    def lookup(
        self,
        workloads: Sequence[tuple[WorkloadKey, WorkloadShape]],
        fastest: Mapping[WorkloadKey, int] | None = None,
    ) -> Mapping[WorkloadKey, Lookup]:
        """Returns an answer for each key. `fastest` is in nanoseconds: a record that claims less
        time is refused and counted."""
        ...

    def claims(
        self,
        workloads: Sequence[tuple[WorkloadKey, WorkloadShape]],
        fastest: Mapping[WorkloadKey, int] | None = None,
    ) -> Mapping[WorkloadKey, ExactHit | TransferHit]:
        """Returns what only the run's own zone has, if it is not trusted. Call it after
        `lookup`."""
        ...

    def standings(self, keys: Sequence[WorkloadKey]) -> Mapping[WorkloadKey, Lookup]:
        """Returns what trusted zones hold of whole models, without counting it."""
        ...

    def targets(self) -> frozenset[str]:
        """Returns the beginnings of the keys of all targets that trusted zones know."""
        ...

    def publish(self, records: Sequence[TuningRecord]) -> bool: ...
    def use(self) -> CacheUse: ...


class ModelJob(msgspec.Struct, frozen=True, kw_only=True):
    """One model file for the compiler. Messages call it `path`."""

    file: Path
    path: changes.ModelPath
    shapes: Shapes
    target: TargetConfig
    inputs: KnownInputs = NOTHING_KNOWN


class BuildJob(msgspec.Struct, frozen=True, kw_only=True):
    """A model to build into `directory` with the best of these records that replays.

    `sources` tells the report where a task's records came from. `variant` and `settings` are a
    candidate's. A schedule that nobody measured is tried inside the model, except for `settled`
    tasks, which the other side's build has tried. With `how`, known from an earlier build of the
    same graph, nothing is tried. `decided` marks choices of the other side's build, in the form of
    `how`, for kernels that both have.

    A build in other numbers runs on `samples` inputs to measure its error, in place of the check;
    with `cases`, outputs of both are kept there. `is_followed`: another candidate is built next, so
    a compiler keeps what they share.
    """

    model: ModelJob
    records: Mapping[WorkloadKey, Sequence[TuningRecord]]
    sources: Mapping[WorkloadKey, ScheduleSource]
    directory: Path
    variant: str = ""
    settings: Mapping[str, str] = {}
    settled: frozenset[WorkloadKey] = frozenset()
    how: HowBuilt | None = None
    decided: tuple[int, ...] = ()
    samples: int = 0
    cases: Path | None = None
    is_followed: bool = False

    def with_default_schedules(self, keys: Collection[WorkloadKey]) -> BuildJob:
        """Returns the job with nothing known of these tasks."""
        records = {key: () if key in keys else own for key, own in self.records.items()}
        sources = {key: source for key, source in self.sources.items() if key not in keys}
        return msgspec.structs.replace(self, records=records, sources=sources)


class Compiler(Protocol):
    """ONNX models to tasks and to builds.

    **Order.** Answers come in the order of the jobs. **Faults.** A model that cannot be taken is a
    ModelError in its place among the tasks, and a Build with `error` set among the builds; a build
    that computes other numbers than ONNX Runtime is an error too, and nothing of it stays on disk.
    """

    def kernels(self, jobs: Sequence[ModelJob]) -> Sequence[str]:
        """Returns the digest that decides the kernels of each model, whatever its weights; ''
        without one."""
        ...

    def tasks(
        self,
        jobs: Sequence[ModelJob],
        known_tasks: Mapping[int, Sequence[TuningTask]] = NOTHING_LISTED,
    ) -> Sequence[Sequence[TuningTask] | ModelError]:
        """Returns the tasks of each job. Their `uses` have one entry, side 'head'. `known_tasks`
        lists, by the place of a job, are the answer: such a model is not opened, and a build of it
        with other kernels is refused."""
        ...

    def refusals(self, jobs: Sequence[ModelJob]) -> Sequence[str]:
        """Returns, for each whole model, why it cannot be built or computes other numbers untuned,
        else ''."""
        ...

    def build(self, jobs: Sequence[BuildJob]) -> Sequence[Build]: ...


class Builder(Protocol):
    """Builds artifacts for a runtime that compiles nothing beforehand. Order and faults as for
    Compiler."""

    def build(self, jobs: Sequence[BuildJob]) -> Sequence[Build]: ...


class CaseScorer(Protocol):
    """Runs the user's own measure of how wrong a build is."""

    def scores(self, command: str, cases: Path) -> tuple[float, ...]:
        """Returns the command's score for each case in a directory, which is then removed. Larger
        is worse. Raises MeasurementError."""
        ...


class Shipping(Protocol):
    """The directories of builds."""

    def keep(self, chosen: Path, others: Sequence[Path], at: Path) -> str:
        """Moves `chosen` to `at`, removes the others, and returns the digest of what is there.
        Raises OutputError, ArtifactError."""
        ...

    def check(self, at: Path, digest: str) -> None:
        """Raises ArtifactError if something else is there by now."""
        ...


class Tuner(Protocol):
    """Tunes one shard. Yields an outcome-so-far after every finished batch, the last one of each
    task being final; stops at the shard's budget, never more than 5 s late. `notes` are about the
    machine, for the report."""

    @property
    def notes(self) -> Sequence[str]: ...

    def tune(
        self,
        shard: Shard,
        models: Mapping[tuple[changes.ModelPath, changes.Side], ShapedModel],
        publish: Publish,
    ) -> Iterator[TaskOutcome]: ...

    def recheck(
        self, shard: Shard, models: Mapping[tuple[changes.ModelPath, changes.Side], ShapedModel]
    ) -> Iterator[TaskOutcome]:
        """Measures the schedules that the look-up of each task brought, beside the
        default one. Searches nothing."""
        ...


class Device(Protocol):
    def fingerprint(self) -> DeviceFingerprint: ...
    def machine(self) -> str:
        """A name that tells this machine from others."""
        ...

    def environment(self) -> Mapping[str, str]: ...


class Progress(Protocol):
    """Talk for people, on stderr: a live line on a terminal, plain lines in a log. A step of an
    expected kind is told as one of so many; `seconds_left` is what the step itself still needs."""

    def expect(self, steps: Sequence[ExpectedStep]) -> None: ...
    def step(self, text: str, kind: StepKind | None = None) -> None: ...
    def update(self, text: str, seconds_left: float | None = None) -> None: ...
    def warn(self, text: str) -> None: ...


# What measuring needs.


class ProbeThresholds(msgspec.Struct, frozen=True, kw_only=True):
    """Effects, ln(head / base) by medians and by means of blocks, from which a probe is not
    enough: the same process is measured for longer."""

    by_median: float
    by_mean: float


class Bench(Protocol):
    """A pair of artifacts being measured: each call is one launch of two fresh processes.

    After a launch the properties say what it cost: seconds to start, seconds of each block pair,
    and the spread of ln(head / base) inside it. `launch` raises MeasurementError.
    """

    within_spread: float
    start_seconds: float
    pair_seconds: float

    def launch(self, pairs: int) -> Launch: ...
    def probes(self, count: int, thresholds: ProbeThresholds) -> Generator[Launch]:
        """Probes of fresh processes of the head, one after the other, beside a base that is
        running. Raises MeasurementError."""
        ...


class Turns(NamedTuple):
    """Two models in turn in one process: the inferences of a turn, and the rounds, each of which
    has two turns of either model."""

    inferences: int
    rounds: int


class Benchmarker(Protocol):
    """Measures artifacts (directories with an `artifact.json`) on this machine. All of it raises
    MeasurementError."""

    def pair(
        self,
        base: Path,
        head: Path,
        *,
        slowdown_percent: float = 0.0,
        compares_outputs: bool = False,
    ) -> Bench:
        """The head waits for that much of each of its inferences: to try out a gate. With
        `compares_outputs` the first launch loads both again and tells how their outputs differ."""
        ...

    def single_ms(self, artifact: Path) -> float: ...
    def times(self, artifact: Path, inferences: int) -> Histogram:
        """The times of so many inferences in one fresh process."""
        ...

    def operators_ms(self, artifact: Path) -> Mapping[str, float]:
        """Returns the time of each operator in one inference of the whole model, in ms, all its
        calls together."""
        ...

    def layers(self, base: Path, head: Path, *, number: int, turns: Turns) -> LayersLaunch:
        """Times the layers of both sides inside their models, in one fresh process, which decides
        by `number` on what inputs and in what order."""
        ...

    def reference_ms(self, model: ShapedModel, *, threads: int) -> float: ...


class Scorer(Protocol):
    """Scores a build by the user's metric: larger is better. Raises MeasurementError."""

    def score(self, artifact: Path) -> float: ...


# The counters of energy.


class EnergyReading(msgspec.Struct, frozen=True):
    """The energy that the machine has used since its counters were opened, and its source."""

    joules: float
    source: EnergySource


class EnergyCounter(Protocol):
    """Counters of energy. They count the whole machine, whoever uses it, idle power included."""

    def reading(self) -> EnergyReading | None:
        """The sum so far, which never falls; None where there is no counter, or none any more."""
        ...


class NoCounter:
    """A machine that counts nothing."""

    def reading(self) -> None:
        return None


NO_COUNTER = NoCounter()


class Programs(NamedTuple):
    """The modules of a compiler that run as child processes: the engine knows their protocol, never
    their insides. `searcher` answers the requests of a search in `tune/protocol.py`, `worker`
    builds and times a `Measure`. `gpu_variables` returns the variables of children that choose
    kernels for the first visible GPU."""

    searcher: str
    worker: str
    gpu_variables: Callable[[], Mapping[str, str]]
