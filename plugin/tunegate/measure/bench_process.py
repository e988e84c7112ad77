"""A fresh process that loads an artifact and times it."""

import math
import selectors
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar, cast

import msgspec

from tunegate.config import OperatorLibraryConfig, TargetConfig
from tunegate.errors import EnvironmentUnfitError, MeasurementError
from tunegate.measure.bench_messages import (
    BenchReply,
    BenchRequest,
    Block,
    Broken,
    OutputSample,
    Profile,
    ProfileBoth,
    Profiled,
    ProfiledBoth,
    Ready,
    Sample,
    Sampled,
    Start,
    Timed,
)
from tunegate.ports import EnergyCounter
from tunegate.system.energy import POWERCAP, device_energy
from tunegate.system.machine.device_lock import held_device
from tunegate.system.nvidia.gpus import MeasuredGpu
from tunegate.system.nvidia.nvml import StateReader, watch_device
from tunegate.system.nvidia.session import error_on, gpus_of, loss_among, prepare_devices
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor
from tunegate.system.processes.child import Child, ChildDiedError
from tunegate.system.processes.memory_limit import MemoryLimit, memory_limit

_MODULE = "tunegate.runtimes.bench_worker"
WARM_UP_SECONDS = 0.5
MAX_SECONDS = 120.0
_MAX_BLOCK_SECONDS = 5.0

Reply = TypeVar("Reply", Ready, Timed, Profiled, ProfiledBoth, Sampled)


class Limits(NamedTuple):
    """Limits of a bench process: seconds for an answer, and the number of processes that share the
    memory (the free memory at that time, or `memory`). `pythons` maps artifacts to the Python of
    another environment; `libraries` may be loaded for custom operators. `times_load` costs
    more loads. After `launch_seconds` a launch ends with the pairs that it has, if they suffice."""

    seconds: float = MAX_SECONDS
    processes: int = 1
    memory: MemoryLimit | None = None
    pythons: Mapping[str, Path] = {}
    libraries: tuple[OperatorLibraryConfig, ...] = ()
    times_load: bool = False
    launch_seconds: float = math.inf


ALONE = Limits()


class TimedBlock(NamedTuple):
    """`inferences` counts all that ran; all but the first few were timed."""

    times_ms: tuple[float, ...]
    inferences: int


class Process:
    """One side of a launch."""

    def __init__(
        self, start: Start, log: Path, more: Mapping[str, str], limits: Limits = ALONE
    ) -> None:
        kind = cast("type[BenchReply]", BenchReply)
        variables = {
            "OMP_NUM_THREADS": str(start.threads),
            "PYTHONHASHSEED": "0",
            **more,
        }
        self._log = log
        memory = limits.memory or memory_of([start], limits.processes)
        self._child: Child[BenchReply] = Child(
            _MODULE,
            kind,
            variables=variables,
            memory=memory,
            log=log,
            python=limits.pythons.get(start.artifact),
        )
        self._limits = limits
        self._start = start
        self.peak_bytes = self.workspace_bytes = 0
        self.load_ms: float | None = None
        self.first_load_ms = 0.0

    def start(self, again: Start | None = None) -> float:
        """Returns the median milliseconds after the warm-up. A running process may load `again`."""
        limits = self._limits
        start = msgspec.structs.replace(
            again or self._start, libraries=limits.libraries, times_load=limits.times_load
        )
        ready = self._ask(start, Ready)
        self.peak_bytes, self.workspace_bytes = ready.peak_bytes, ready.workspace_bytes
        self.load_ms, self.first_load_ms = ready.load_ms, ready.first_load_ms
        return ready.milliseconds

    def block_ms(
        self, inferences: int, most_seconds: float = _MAX_BLOCK_SECONDS
    ) -> tuple[float, ...]:
        return self.block(inferences, most_seconds).times_ms

    def block(self, inferences: int, most_seconds: float = _MAX_BLOCK_SECONDS) -> TimedBlock:
        """Returns the times of one block, and the number of inferences that ran."""
        reply = self._ask(Block(inferences, most_seconds), Timed)
        times = tuple(n / 1e6 for n in reply.nanoseconds)
        return TimedBlock(times, len(times) + reply.untimed)

    def operators_ms(self, inferences: int) -> dict[str, float]:
        start, libraries = self._start, self._limits.libraries
        request = Profile(start.artifact, start.threads, inferences, start.seed, libraries)
        return self._ask(request, Profiled).milliseconds

    def outputs(self) -> tuple[OutputSample, ...]:
        """Returns what one inference computes. Blocks cannot be timed after it."""
        start = msgspec.structs.replace(self._start, libraries=self._limits.libraries)
        return self._ask(Sample(start), Sampled).outputs

    def layers_of_both(self, request: ProfileBoth) -> ProfiledBoth:
        return self._answer(  # of both sides, so that its trouble has none
            msgspec.structs.replace(request, libraries=self._limits.libraries), ProfiledBoth
        )

    @property
    def pid(self) -> int:
        return self._child.pid

    def close(self) -> None:
        self._child.kill()

    def _ask(self, request: BenchRequest, kind: type[Reply]) -> Reply:
        """Returns the answer. Raises MeasurementError with the artifact's name, which is its side
        in a gate."""
        try:
            return self._answer(request, kind)
        except MeasurementError as error:
            message = f"{Path(self._start.artifact).name}: {error}"
            raise MeasurementError(message) from error

    def _answer(self, request: BenchRequest, kind: type[Reply]) -> Reply:
        deadline = time.monotonic() + self._limits.seconds
        try:
            self._child.send(request)
            with selectors.DefaultSelector() as selector:
                selector.register(self._child, selectors.EVENT_READ)
                while time.monotonic() < deadline:
                    selector.select(timeout=1.0)
                    reply = self._child.receive()
                    if isinstance(reply, kind):
                        return reply
                    if isinstance(reply, Broken):
                        raise MeasurementError(reply.reason)
        except ChildDiedError as error:
            message = f"the measuring process {error} (log: {self._log})"
            raise MeasurementError(message) from error
        message = f"no answer in {self._limits.seconds:.0f} s (log: {self._log})"
        raise MeasurementError(message)


def memory_of(starts: Sequence[Start], processes: int) -> MemoryLimit:
    """Returns the memory limit for each of `processes` processes."""
    devices = {ArtifactFile.read(Path(start.artifact)).device for start in starts}
    return memory_limit("cuda" if "cuda" in devices else "llvm", children=processes)


def start_of(
    artifact: Path,
    seed: int,
    slowdown_percent: float = 0.0,
    warm_up_seconds: float = WARM_UP_SECONDS,
    inputs: tuple[ArtifactTensor, ...] = (),
    *,
    case: int | None = None,
) -> Start:
    threads = ArtifactFile.read(artifact).threads
    place = str(artifact.absolute())
    return Start(place, threads, warm_up_seconds, seed, slowdown_percent, inputs, case)


# The device of a measurement, leased for its duration.


class LeasedDevice(NamedTuple):
    """A leased device: environment variables for the processes that measure on it, its present
    state, and the energy used since the lease. A CPU has no state."""

    variables: dict[str, str]
    look: StateReader
    energy: EnergyCounter


class Devices:
    """The devices of a measurement; `cuda` is the target of GPU artifacts. The first matching
    device is used, so all launches compare on one; once it is lost, it is not asked again.
    `powercap` has the processors' counters."""

    def __init__(self, cuda: TargetConfig | None, powercap: Path = POWERCAP) -> None:
        self._powercap = powercap
        self._cuda = cuda or TargetConfig(name="cuda", kind="cuda")
        self._gpu: MeasuredGpu | None = None
        self._loss = ""

    @contextmanager
    def of(self, *artifacts: Path) -> Iterator[LeasedDevice]:
        """Leases the device of these artifacts. A GPU is locked against all other users of this
        host, and idle when the lease begins. Raises MeasurementError if none is available."""
        if all(ArtifactFile.read(path).device == "cpu" for path in artifacts):
            with device_energy(None, self._powercap) as energy:
                yield LeasedDevice({}, lambda: None, energy)
            return
        if self._loss:
            raise MeasurementError(self._loss)
        try:
            gpu = self._measured_gpu()
            with (
                prepare_devices([gpu], self._cuda),
                held_device(gpu.claim),
                watch_device(gpu.gpu.uuid) as look,
                device_energy(gpu.gpu, self._powercap) as energy,
            ):
                yield LeasedDevice(gpu.variables, look, energy)
        except EnvironmentUnfitError as error:
            raise MeasurementError(str(error)) from error
        except MeasurementError as error:
            device = self._measured_gpu().gpu
            self._loss = loss_among([device], "while models were timed", str(error))
            trouble = self._loss or error_on(device, str(error))
            if not trouble:
                raise
            raise MeasurementError(trouble) from error

    def _measured_gpu(self) -> MeasuredGpu:
        if self._gpu is None:
            self._gpu = gpus_of(self._cuda)[0]
        return self._gpu
