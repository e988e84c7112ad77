"""Implements ports.Builder for a runtime that does not compile ahead: one child per model. Builds
on a GPU run one after another, since some choose kernels by timing them."""

import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, cast

import msgspec

from tunegate.artifacts.builds import Build, NumericCheck, SampledErrors
from tunegate.artifacts.candidates import QUANTIZATION, REFERENCE, STATIC, RuntimeName
from tunegate.artifacts.inputs import NOTHING_KNOWN, DrawnInput, KnownInputs
from tunegate.config import OperatorLibraryConfig
from tunegate.models.operator_libraries import Libraries
from tunegate.models.seeded_inputs import MAX_CALIBRATION_INPUTS, calibration_seeds, error_seeds
from tunegate.ports import Builder, BuildJob
from tunegate.runtimes.registry import runtime_named
from tunegate.runtimes.runtime import Runtime
from tunegate.system.clock import derive_seed
from tunegate.system.machine.cores import default_threads, usable_cores
from tunegate.system.nvidia.gpus import variables_for, visible_gpus
from tunegate.system.output.directory import require_room
from tunegate.system.processes.child import Child
from tunegate.system.processes.conversations import Conversation, converse
from tunegate.system.processes.memory_limit import MemoryLimit, memory_shares
from tunegate.tune.expected_time import TargetKind

_CHILD = "tunegate.runtimes.build_child"
_CHECKS = 2
"""The number of inputs that a build must compute correctly."""
MAX_BUILD_SECONDS = 300.0


_Place = tuple[Path, tuple[tuple[str, tuple[int, ...]], ...]]
"""A model's file, and its sizes."""
TooSlow = dict[_Place, str]
"""The reason for each model that takes too long to build."""


# Messages to and from the child that makes an artifact.


class WriteArtifact(msgspec.Struct, frozen=True, tag="write", kw_only=True):
    """A request to make an artifact of the model in `file`, called `path` in messages; `scratch` is
    private to it. The model runs on the inputs of `seeds`, compared with the reference unless this
    is its own runtime. For a build in lower precision, `samples` are the seeds of inputs that
    measure its error, `calibration` those it may learn from, and the results on the samples are
    saved in the directory `cases`, if given. `libraries` may be loaded for custom operators."""

    runtime: RuntimeName
    variant: str
    settings: dict[str, str]
    is_reference: bool
    file: str
    path: str
    shapes: dict[str, tuple[int, ...]]
    threads: int
    device: Literal["cpu", "cuda"] = "cpu"
    directory: str
    scratch: str
    seeds: tuple[int, ...]
    inputs: KnownInputs = NOTHING_KNOWN
    samples: tuple[int, ...] = ()
    calibration: tuple[int, ...] = ()
    cases: str = ""
    libraries: tuple[OperatorLibraryConfig, ...] = ()


class WrittenBuild(msgspec.Struct, frozen=True, tag="written", kw_only=True):
    """`key` is the digest of everything that decides what runs. The requester reports a failed
    `check`. `notes` tell a user how it runs."""

    key: str
    size_bytes: int
    seconds: float
    check: NumericCheck | None = None
    inputs: tuple[DrawnInput, ...] = ()
    sampled: SampledErrors | None = None
    notes: tuple[str, ...] = ()


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The model cannot be built; `memory` if memory ran out, of which another child may have more,
    `room` if a disk was full, `is_too_slow` if no runtime need try."""

    reason: str
    memory: bool = False
    room: bool = False
    is_too_slow: bool = False


WriteReply = WrittenBuild | Refused
"""A reply of the child."""


class SavingBuilder:
    """Builds in children. `scratch` is a private directory; models are checked on inputs of `seed`.
    A model that takes longer than `limit_seconds` is an error. Custom operators may come from
    `libraries`. Builders share in `too_slow` the models of which no inference ends."""

    def __init__(
        self,
        runtime: Runtime,
        scratch: Path,
        *,
        seed: int,
        limit_seconds: float = MAX_BUILD_SECONDS,
        libraries: Libraries = (),
        too_slow: TooSlow | None = None,
    ) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self._runtime, self._scratch, self._seed = runtime, scratch, seed
        self._limit_seconds = min(limit_seconds, MAX_BUILD_SECONDS)
        self._libraries = tuple(libraries)
        self._too_slow = {} if too_slow is None else too_slow
        self._count = 0

    def build(self, jobs: Sequence[BuildJob]) -> Sequence[Build]:
        on_device = any(job.model.target.kind == "cuda" for job in jobs)
        kind: TargetKind = "cuda" if on_device else "llvm"
        shares = memory_shares([job.model.file for job in jobs], usable_cores(), kind)
        begin = partial(self._child, shares.memory, _device_variables() if on_device else {})
        talks = [Conversation(begin, self._request(job)) for job in jobs]
        pairs = [*zip(jobs, talks, strict=True)]
        converse(
            [talk for job, talk in pairs if _place(job) not in self._too_slow],
            at_once=1 if on_device else shares.at_once,
            limit_seconds=self._limit_seconds,
            on_end=lambda talk: talk.dismiss(),
        )
        return [self._finish(job, talk) for job, talk in pairs]

    def _child(self, memory: MemoryLimit, variables: Mapping[str, str]) -> Child[WriteReply]:
        kind = cast("type[WriteReply]", WriteReply)
        return Child(_CHILD, kind, variables=variables, memory=memory, log=self._log)

    @property
    def _log(self) -> Path:
        return self._scratch / "builder.log"

    def _request(self, job: BuildJob) -> WriteArtifact:
        self._count += 1
        count = MAX_CALIBRATION_INPUTS if job.settings.get(QUANTIZATION) == STATIC else 0
        return WriteArtifact(
            runtime=self._runtime.name,
            variant=job.variant,
            settings=dict(job.settings),
            is_reference=self._runtime.name == REFERENCE and not job.settings,
            file=str(job.model.file.resolve()),
            path=job.model.path,
            shapes=dict(job.model.shapes),
            threads=job.model.target.threads or default_threads(),
            device="cuda" if job.model.target.kind == "cuda" else "cpu",
            directory=str(job.directory.resolve()),
            scratch=str((self._scratch / f"model-{self._count}").resolve()),
            seeds=tuple(derive_seed(self._seed, "check", n) for n in range(_CHECKS)),
            inputs=job.model.inputs,
            samples=error_seeds(job.samples),
            calibration=calibration_seeds(count),
            cases=str(job.cases.resolve()) if job.cases is not None else "",
            libraries=self._libraries,
        )

    def _finish(self, job: BuildJob, talk: Conversation[WriteReply]) -> Build:
        reply = talk.replies[0] if talk.replies else None
        error = self._error(job, talk)
        if error is not None:
            has_lacked = isinstance(reply, Refused) and reply.room
            require_room(job.directory.parent, error, has_lacked=has_lacked)
            shutil.rmtree(job.directory, ignore_errors=True)
        build = reply if isinstance(reply, WrittenBuild) else None
        return Build(
            key=build.key if build else "",
            directory=job.directory.name if error is None else "",
            tasks=(),
            check=build.check if build else None,
            error=error,
            size_bytes=build.size_bytes if build else 0,
            seconds=build.seconds if build else 0.0,
            runtime=self._runtime.name,
            crashed=talk.died is not None or (isinstance(reply, Refused) and reply.memory),
            inputs=build.inputs if build else (),
            sampled=build.sampled if build else None,
            notes=build.notes if build else (),
        )

    def _error(self, job: BuildJob, talk: Conversation[WriteReply]) -> str | None:
        path, title = job.model.path, self._runtime.title
        if not talk.replies and _place(job) in self._too_slow:
            return self._too_slow[_place(job)]
        match talk.replies[0] if talk.replies else None:
            case WrittenBuild(check=check):
                wrong = check.detail if check is not None else ""
                return f"{path}: {title} computes other numbers: {wrong}." if wrong else None
            case Refused(reason=reason, is_too_slow=is_too_slow):
                if is_too_slow:
                    self._too_slow[_place(job)] = reason
                return reason
            case _:
                death = f"{path}: {title} {talk.died} on this model"
                return f"{death} (log: {self._log})."


def _place(job: BuildJob) -> _Place:
    return job.model.file, tuple(sorted(job.model.shapes.items()))


def _device_variables() -> dict[str, str]:
    """Returns the variables of a process that sees only the first GPU, where builds are measured
    later."""
    first = next(iter(visible_gpus()), None)
    return {} if first is None else variables_for(first)


def reference_builder(scratch: Path, seed: int, libraries: Libraries = ()) -> Builder:
    """Returns the builder of the reference, which others are compared with."""
    return SavingBuilder(runtime_named(REFERENCE), scratch, seed=seed, libraries=libraries)


_: type[Builder] = SavingBuilder
