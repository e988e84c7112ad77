"""ports.Benchmarker: pairs of fresh processes, timed in alternating blocks."""

from __future__ import annotations

import selectors
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TypeVar, cast

from tunegate.artifacts.measurements import Histogram, Launch
from tunegate.config import TargetConfig
from tunegate.edges.artifact_file import ArtifactFile
from tunegate.edges.bench.blocks import Blocks
from tunegate.edges.bench.devices import Devices, Lent
from tunegate.edges.bench.launch_order import LaunchOrder, launch_order
from tunegate.edges.bench.messages import (
    BenchReply,
    Block,
    Broken,
    Profile,
    Profiled,
    Ready,
    Start,
    Timed,
)
from tunegate.edges.child import Child, ChildDiedError
from tunegate.edges.nvidia.state import Look
from tunegate.edges.onnx_prepare import prepare
from tunegate.edges.run_seed import derived
from tunegate.errors import MeasurementError
from tunegate.gate.effect import launch_effect, launch_noise, within_spread
from tunegate.gate.histogram import histogram
from tunegate.ports import Bench, Benchmarker, Shapes

_MODULE = "tunegate.edges.bench.worker"
_WARM_UP_SECONDS = 0.5
_LEAST_BLOCK_MS, _USUAL_INFERENCES, _LONGEST_BLOCK_MS, _FEWEST = 50.0, 20, 500.0, 3
_MOST_BLOCK_SECONDS = 5.0
_REFERENCE_INFERENCES = 50
_PROFILED_INFERENCES = 10
_LIMIT_SECONDS = 120.0

Expected = TypeVar("Expected", Ready, Timed, Profiled)


class Process:
    """One side of a launch."""

    def __init__(self, start: Start, log: Path, more: Mapping[str, str]) -> None:
        kind = cast("type[BenchReply]", BenchReply)
        variables = {
            "TVM_NUM_THREADS": str(start.threads),
            # Bound to a core, a thread waits there for whoever else is on it.
            "TVM_BIND_THREADS": "0",
            "OMP_NUM_THREADS": str(start.threads),
            "PYTHONHASHSEED": "0",
            **more,
        }
        self._log = log
        self._child: Child[BenchReply] = Child(_MODULE, kind, variables=variables, log=log)
        self._start = start
        self.peak_bytes = self.workspace_bytes = 0

    def start(self) -> float:
        """Median milliseconds after warming up."""
        ready = self._ask(self._start, Ready)
        self.peak_bytes, self.workspace_bytes = ready.peak_bytes, ready.workspace_bytes
        return ready.milliseconds

    def block_ms(
        self, inferences: int, most_seconds: float = _MOST_BLOCK_SECONDS
    ) -> tuple[float, ...]:
        timed = self._ask(Block(inferences, most_seconds), Timed)
        return tuple(n / 1e6 for n in timed.nanoseconds)

    def operators_ms(self, inferences: int) -> dict[str, float]:
        request = Profile(self._start.artifact, self._start.threads, inferences, self._start.seed)
        return self._ask(request, Profiled).milliseconds

    @property
    def pid(self) -> int:
        return self._child.pid

    def close(self) -> None:
        self._child.kill()

    def _ask(self, request: Start | Block | Profile, expected: type[Expected]) -> Expected:
        deadline = time.monotonic() + _LIMIT_SECONDS
        try:
            self._child.send(request)
            with selectors.DefaultSelector() as selector:
                selector.register(self._child, selectors.EVENT_READ)
                while time.monotonic() < deadline:
                    selector.select(timeout=1.0)
                    reply = self._child.receive()
                    if isinstance(reply, expected):
                        return reply
                    if isinstance(reply, Broken):
                        raise MeasurementError(reply.reason)
        except ChildDiedError as error:
            message = f"the measuring process {error} (log: {self._log})"
            raise MeasurementError(message) from error
        message = f"no answer in {_LIMIT_SECONDS:.0f} s (log: {self._log})"
        raise MeasurementError(message)


class PairBench:
    """Two artifacts, measured launch by launch; the block size is calibrated by the first. Both sides of a
    launch have the same inputs."""

    def __init__(
        self,
        base: Path,
        head: Path,
        scratch: Path,
        seed: int,
        devices: Devices,
        slowdown_percent: float = 0.0,
    ) -> None:
        self._slowdowns = (0.0, slowdown_percent)
        self._scratch, self._seed = scratch, seed
        self._devices, self._artifacts = devices, (base, head)
        self._launches = 0
        self._inferences: int | None = None
        self.within_spread = 0.0
        self.start_seconds = 0.0
        self.pair_seconds = 0.0

    def launch(self, pairs: int) -> Launch:
        """Two fresh processes in random order; ABBA quartets from a random start. Raises
        MeasurementError."""
        with self._devices.of(*self._artifacts) as device:
            return self._launch(pairs, device)

    def _launch(self, pairs: int, device: Lent) -> Launch:
        started = time.monotonic()
        self._launches += 1
        order = launch_order(self._seed, self._launches, pairs)
        with ExitStack() as stack:
            processes = self._started(stack, order, device.variables)
            self.start_seconds = time.monotonic() - started
            blocks_started = time.monotonic()
            taken = self._blocks(processes, order, device.look)
            self.pair_seconds = (time.monotonic() - blocks_started) / pairs
        medians = taken.counted_medians()
        self.within_spread = within_spread(*medians)
        base_times, head_times = taken.times(0), taken.times(1)
        return Launch(
            effect=launch_effect(*medians),
            base_ms=statistics.median(base_times),
            head_ms=statistics.median(head_times),
            pairs=pairs,
            seconds=time.monotonic() - started,
            noise=launch_noise(*medians),
            base_times=histogram(base_times),
            head_times=histogram(head_times),
            base_peak_bytes=processes[0].peak_bytes,
            head_peak_bytes=processes[1].peak_bytes,
            base_workspace_bytes=processes[0].workspace_bytes,
            head_workspace_bytes=processes[1].workspace_bytes,
            clocks=taken.clocks(),
        )

    def _starts(self, seed: int) -> tuple[Start, Start]:
        base, head = (
            _start_of(artifact, seed, slowdown)
            for artifact, slowdown in zip(self._artifacts, self._slowdowns, strict=True)
        )
        return base, head

    def _blocks(self, processes: Sequence[Process], order: LaunchOrder, look: Look) -> Blocks:
        """The device is looked at between blocks only: asking it while it works disturbs it."""
        taken = Blocks()
        for first in order.blocks:
            for side in (first, 1 - first):
                times = processes[side].block_ms(self._block_size())
                taken.add(side, times, look())
        return taken

    def _started(
        self, stack: ExitStack, order: LaunchOrder, variables: Mapping[str, str]
    ) -> list[Process]:
        starts = self._starts(order.inputs)
        processes: dict[int, Process] = {}
        for side in order.processes:
            process = Process(starts[side], self._scratch / "bench.log", variables)
            stack.callback(process.close)
            processes[side] = process
        milliseconds = {side: processes[side].start() for side in order.processes}
        if self._inferences is None:
            self._inferences = block_size(min(milliseconds.values()), max(milliseconds.values()))
        return [processes[0], processes[1]]

    def _block_size(self) -> int:
        return self._inferences or _USUAL_INFERENCES


class FreshProcesses:
    """Measures on this machine; artifacts for GPUs on that of the target `cuda`. Inputs and orders
    come from `seed`."""

    def __init__(self, scratch: Path, seed: int, cuda: TargetConfig | None = None) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self._scratch = scratch
        self._devices = Devices(cuda)
        self._seed = seed
        self._alone = derived(seed, "alone")
        self._pairs = 0

    def pair(self, base: Path, head: Path, *, slowdown_percent: float = 0.0) -> Bench:
        self._pairs += 1
        seed = derived(self._seed, "pair", self._pairs)
        return PairBench(base, head, self._scratch, seed, self._devices, slowdown_percent)

    def single_ms(self, artifact: Path) -> float:
        with self._process(artifact) as process:
            return _median_ms(process)

    def times(self, artifact: Path, inferences: int) -> Histogram:
        with self._process(artifact) as process:
            process.start()
            return histogram(process.block_ms(inferences, _LIMIT_SECONDS / 2))

    def operators_ms(self, artifact: Path) -> Mapping[str, float]:
        with self._process(artifact) as process:
            return process.operators_ms(_PROFILED_INFERENCES)

    def reference_ms(self, model: Path, *, shapes: Shapes, threads: int) -> float:
        """ONNX Runtime on the model with its shapes fixed."""
        with tempfile.TemporaryDirectory(dir=self._scratch) as into:
            prepared = prepare(model, shapes=shapes, into=Path(into), path=model.name)
            start = Start(
                "", str(prepared.fixed.absolute()), threads, _WARM_UP_SECONDS, self._alone
            )
            with closing(Process(start, self._scratch / "bench.log", {})) as process:
                return _median_ms(process)

    @contextmanager
    def _process(self, artifact: Path) -> Iterator[Process]:
        with self._devices.of(artifact) as device:
            start = _start_of(artifact, self._alone)
            process = Process(start, self._scratch / "bench.log", device.variables)
            with closing(process):
                yield process


def _median_ms(process: Process) -> float:
    milliseconds = process.start()
    inferences = min(_REFERENCE_INFERENCES, block_size(milliseconds, milliseconds))
    return statistics.median(process.block_ms(inferences))


def block_size(faster_ms: float, slower_ms: float) -> int:
    """Inferences of a block of either side: 20 of them and 50 ms of the faster side at least, unless
    that took the slower side over half a second: a slow model is steady enough for 3, and two dozen
    blocks must not eat the budget of its cell, also where one side is a hundred times the other."""
    wanted = max(_USUAL_INFERENCES, _LEAST_BLOCK_MS / max(faster_ms, 1e-4))
    return max(_FEWEST, int(min(wanted, _LONGEST_BLOCK_MS / max(slower_ms, 1e-4))))


def _start_of(artifact: Path, seed: int, slowdown_percent: float = 0.0) -> Start:
    threads = ArtifactFile.read(artifact).threads
    return Start(str(artifact.absolute()), "", threads, _WARM_UP_SECONDS, seed, slowdown_percent)


_: type[Benchmarker] = FreshProcesses
