"""`ports.Bench` for two artifacts, timed in alternating blocks of fresh processes."""

from __future__ import annotations

import itertools
import math
import random
import statistics
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from tunegate.artifacts.changes import SIDES, Side
from tunegate.artifacts.histogram import histogram
from tunegate.artifacts.measurements import Clocks, GpuState, Launch, Stalls
from tunegate.artifacts.plans import EnergySource
from tunegate.decide.decision import launch_effect, launch_noise, within_spread
from tunegate.decide.gpu_clocks import clocks_of, kept_pairs
from tunegate.decide.stalls import stalls_of
from tunegate.errors import MeasurementError
from tunegate.measure.bench_messages import OutputSample, Sides, Start, other_side
from tunegate.measure.bench_process import (
    WARM_UP_SECONDS,
    Devices,
    LeasedDevice,
    Limits,
    Process,
    memory_of,
    start_of,
)
from tunegate.models.inputs.agreement import agree_on_inputs
from tunegate.models.seeded_inputs import cases_of
from tunegate.ports import EnergyReading, ProbeThresholds
from tunegate.system.clock import derive_seed
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor
from tunegate.wording import plural

_MIN_BLOCK_MS, _USUAL_INFERENCES, _MAX_BLOCK_MS, _FEWEST = 50.0, 20, 500.0, 3
_SHORT_WARM_UP_SECONDS = 0.1
_PROBES_OF_BASE = 4
"""The number of probes that share one process of the base: its speed is in all of them."""
_PROBE_PAIRS = (3, 3, 6)
"""The pairs in each round of probes. A later round runs only while the head seems slow."""
_SUFFICIENT_PAIRS = 4
_LIMITS = Limits(processes=2)


class PairBench:
    """Two artifacts, measured launch by launch. The first launch calibrates the block size. Both
    sides of a launch have the same inputs."""

    def __init__(
        self,
        artifacts: Sides[Path],
        scratch: Path,
        seed: int,
        devices: Devices,
        *,
        slowdown_percent: float = 0.0,
        compares_outputs: bool = False,
        limits: Limits = _LIMITS,
    ) -> None:
        self._limits, self._compares_outputs = limits, compares_outputs
        self._slowdowns = Sides(0.0, slowdown_percent)
        self._scratch, self._seed = scratch, seed
        self._devices, self._artifacts = devices, artifacts
        self._launches = 0
        self._inferences: int | None = None
        self._most_probed = _USUAL_INFERENCES
        self.within_spread = 0.0
        self.start_seconds = 0.0
        self.pair_seconds = 0.0

    def launch(self, pairs: int) -> Launch:
        """Times two fresh processes, started in random order, in ABBA quartets from a random side.
        Raises MeasurementError."""
        with self._devices.of(*self._artifacts) as device:
            return self._launch(pairs, device)

    def probes(self, count: int, thresholds: ProbeThresholds) -> Generator[Launch]:
        """Times fresh starts of the head. A few share one process of the base, which loads again
        for the inputs of each. Raises MeasurementError."""
        for first in range(0, count, _PROBES_OF_BASE):
            with self._devices.of(*self._artifacts) as device, ExitStack() as stack:
                start = self._starts(self._seed, _SHORT_WARM_UP_SECONDS).base
                base = self._process(stack, start, device.variables)
                for _ in range(first, min(count, first + _PROBES_OF_BASE)):
                    yield self._probe(base, device, thresholds)

    def _probe(self, base: Process, device: LeasedDevice, thresholds: ProbeThresholds) -> Launch:
        """Times one start. A start that seems slow is timed longer, which tells a burst from a slow
        process."""
        began = time.monotonic()
        self._launches += 1
        order = launch_order(self._seed, self._launches, sum(_PROBE_PAIRS))
        starts = self._starts(order.inputs, _SHORT_WARM_UP_SECONDS, order.case)
        begins = iter(order.blocks)
        with ExitStack() as stack:
            head = self._process(stack, starts.head, device.variables)
            head.start()
            base.start(starts.base)
            sides, blocks = Sides(base, head), Blocks()
            for pairs in _PROBE_PAIRS:
                some = tuple(itertools.islice(begins, pairs))
                self._add_blocks(blocks, sides, some, self._probe_size(), device)
                if not _is_over(blocks, thresholds):
                    break
            return _launch_of_blocks(blocks, sides, began, self._number_of(order.case))

    def _launch(self, pairs: int, device: LeasedDevice) -> Launch:
        began = time.monotonic()
        self._launches += 1
        order = launch_order(self._seed, self._launches, pairs)
        with ExitStack() as stack:
            processes = self._start_sides(stack, order, device.variables)
            self.start_seconds = time.monotonic() - began
            blocks_began = time.monotonic()
            blocks = Blocks()
            until = began + self._limits.launch_seconds
            self._add_blocks(
                blocks, processes, order.blocks, self._block_size(), device, until=until
            )
            self.pair_seconds = (time.monotonic() - blocks_began) / blocks.pairs
            launch = _launch_of_blocks(blocks, processes, began, self._number_of(order.case))
            if self._launches == 1 and self._compares_outputs:
                remarks = filter(None, (self._slower_load(processes), self._differing(processes)))
                launch = msgspec.structs.replace(launch, differing="; ".join(remarks))
        self.within_spread = within_spread(*blocks.counted_medians())
        return launch

    def _differing(self, processes: Sides[Process]) -> str:
        """Returns how the outputs differ. If that cannot be told, for example for lack of memory,
        the measurement still stands: it is over."""
        tensors = Sides(*(ArtifactFile.read(artifact).outputs for artifact in self._artifacts))
        try:
            return differing_outputs(tensors, processes.map(Process.outputs))
        except MeasurementError:
            return differing_outputs(tensors, Sides((), ()))

    def _slower_load(self, processes: Sides[Process]) -> str:
        if self._limits.times_load:
            return ""
        return slower_load(processes.base.first_load_ms, processes.head.first_load_ms)

    def _number_of(self, case: int) -> int:
        """Returns the number of a case, from 1, or 0 if at most one was given."""
        cases = cases_of(self._inputs.base)
        return case % cases + 1 if cases > 1 else 0

    def _starts(self, seed: int, warm_up_seconds: float, case: int | None = None) -> Sides[Start]:
        base, head = (
            start_of(artifact, seed, slowdown, warm_up_seconds, inputs, case=case)
            for artifact, slowdown, inputs in zip(
                self._artifacts, self._slowdowns, self._inputs, strict=True
            )
        )
        return Sides(base, head)

    @cached_property
    def _inputs(self) -> Sides[tuple[ArtifactTensor, ...]]:
        """Returns the inputs of both sides: equal values if both sides can take them."""
        return Sides(
            *agree_on_inputs(*(ArtifactFile.read(artifact).inputs for artifact in self._artifacts))
        )

    def _add_blocks(
        self,
        blocks: Blocks,
        processes: Sides[Process],
        begins: Sequence[Side],
        inferences: int,
        device: LeasedDevice,
        *,
        until: float = math.inf,
    ) -> None:
        """Times blocks and appends them, whole quartets of them alone after `until`. The device is
        read between blocks only: reading it during work disturbs the work."""
        for first in begins:
            is_whole = blocks.pairs >= _SUFFICIENT_PAIRS and blocks.pairs % 2 == 0
            if is_whole and time.monotonic() > until:
                return
            for side in (first, other_side(first)):
                before = device.energy.reading()
                block = processes.of(side).block(inferences)
                energy = block_energy(before, device.energy.reading(), block.inferences)
                blocks.add(side, block.times_ms, device.look(), energy)

    def _start_sides(
        self, stack: ExitStack, order: LaunchOrder, variables: Mapping[str, str]
    ) -> Sides[Process]:
        starts = self._starts(order.inputs, WARM_UP_SECONDS, order.case)
        processes = {
            side: self._process(stack, starts.of(side), variables) for side in order.processes
        }
        milliseconds = {side: processes[side].start() for side in order.processes}
        if self._inferences is None:
            faster, slower = min(milliseconds.values()), max(milliseconds.values())
            self._inferences = block_size(faster, slower)
            self._most_probed = max(_FEWEST, round(_MIN_BLOCK_MS / max(slower, 1e-4)))
        return Sides(processes["base"], processes["head"])

    def _process(self, stack: ExitStack, start: Start, variables: Mapping[str, str]) -> Process:
        if self._limits.memory is None:
            # Free memory changes between two calls, and both sides need the same limit.
            memory = memory_of(self._starts(self._seed, WARM_UP_SECONDS), self._limits.processes)
            self._limits = self._limits._replace(memory=memory)
        process = Process(start, self._scratch / "bench.log", variables, self._limits)
        stack.callback(process.close)
        return process

    def _block_size(self) -> int:
        return self._inferences or _USUAL_INFERENCES

    def _probe_size(self) -> int:
        """Returns the size of a probe: no longer than it takes to see a slow process."""
        return min(self._block_size(), self._most_probed)


def block_size(faster_ms: float, slower_ms: float) -> int:
    """Returns the inferences of a block: at least 20 and 50 ms of the faster side, unless the
    slower side would take over half a second. A slow model is steady enough with 3, and two dozen
    blocks must fit its cell's budget even if one side is a hundred times slower."""
    size = max(_USUAL_INFERENCES, _MIN_BLOCK_MS / max(faster_ms, 1e-4))
    return max(_FEWEST, int(min(size, _MAX_BLOCK_MS / max(slower_ms, 1e-4))))


_SLOWER_LOAD, _SLOWER_LOAD_MS = 2.0, 1000.0
"""A load is told that takes so many times the base's, and so much longer."""


def slower_load(base_ms: float, head_ms: float) -> str:
    """Returns that the head's first load takes far longer, '' if it does not."""
    if head_ms < max(_SLOWER_LOAD * base_ms, base_ms + _SLOWER_LOAD_MS):
        return ""
    return (
        f"the head takes {head_ms / 1e3:.1f} s of the processor to load, the base "
        f"{base_ms / 1e3:.1f} s, which is not judged without gate.load-margin-percent"
    )


def _is_over(blocks: Blocks, thresholds: ProbeThresholds) -> bool:
    by_median = launch_effect(*blocks.counted_medians())
    return (
        by_median >= thresholds.by_median
        or launch_effect(*blocks.counted_means()) >= thresholds.by_mean
    )


def _launch_of_blocks(blocks: Blocks, processes: Sides[Process], began: float, case: int) -> Launch:
    medians = blocks.counted_medians()
    base, head = blocks.energy("base"), blocks.energy("head")
    base_times, head_times = blocks.times("base"), blocks.times("head")
    base_load_ms, head_load_ms = processes.base.load_ms, processes.head.load_ms
    return Launch(
        effect=launch_effect(*medians),
        base_ms=statistics.median(base_times),
        head_ms=statistics.median(head_times),
        pairs=blocks.pairs,
        seconds=time.monotonic() - began,
        noise=launch_noise(*medians),
        mean_effect=launch_effect(*blocks.counted_means()),
        base_times=histogram(base_times),
        head_times=histogram(head_times),
        base_peak_bytes=processes.base.peak_bytes,
        head_peak_bytes=processes.head.peak_bytes,
        base_workspace_bytes=processes.base.workspace_bytes,
        head_workspace_bytes=processes.head.workspace_bytes,
        clocks=blocks.clocks(),
        base_joules=None if base is None else base.joules,
        head_joules=None if head is None else head.joules,
        energy_source=None if head is None else head.source,
        stalls=blocks.stalls(),
        first_ms=(medians.base[0], medians.head[0]),
        load_ms=(base_load_ms, head_load_ms) if base_load_ms and head_load_ms else None,
        case=case,
    )


# The timed blocks of one launch, and the device's state after each.

_Of = TypeVar("_Of")


class Blocks:
    """Block number n of both sides is pair n."""

    def __init__(self) -> None:
        self._times: Sides[list[Sequence[float]]] = Sides([], [])
        self._states: Sides[list[GpuState]] = Sides([], [])
        self._energies: Sides[list[BlockEnergy | None]] = Sides([], [])

    def add(
        self,
        side: Side,
        times_ms: Sequence[float],
        state: GpuState | None,
        energy: BlockEnergy | None = None,
    ) -> None:
        self._times.of(side).append(times_ms)
        self._states.of(side).append(state or GpuState())
        self._energies.of(side).append(energy)

    @property
    def pairs(self) -> int:
        """The number of block pairs made."""
        return len(self._times.head)

    def times(self, side: Side) -> list[float]:
        """Returns the times of every inference in the pairs that count."""
        return [ms for block in self._counted_times(side) for ms in block]

    def counted_medians(self) -> Sides[list[float]]:
        """Returns the median of each counted block, of the base and of the head."""
        return self._of_each_block(statistics.median)

    def counted_means(self) -> Sides[list[float]]:
        """Returns the mean of each counted block, of the base and of the head."""
        return self._of_each_block(statistics.fmean)

    def stalls(self) -> tuple[Stalls, ...]:
        """Returns the stalls of each size in the pairs that count."""
        return stalls_of(self._counted_times("base"), self._counted_times("head"))

    def clocks(self) -> Clocks | None:
        return clocks_of(*self._states)

    def energy(self, side: Side) -> SideEnergy | None:
        """Returns the energy of one inference, over the pairs that count."""
        return side_energy(self._counted_only(self._energies.of(side)))

    def _of_each_block(self, statistic: Callable[[Sequence[float]], float]) -> Sides[list[float]]:
        times = Sides(self._counted_times("base"), self._counted_times("head"))
        return times.map(lambda blocks: [statistic(block) for block in blocks])

    def _counted_times(self, side: Side) -> list[Sequence[float]]:
        return self._counted_only(self._times.of(side))

    def _counted_only(self, every: list[_Of]) -> list[_Of]:
        """Returns the blocks that count, or all if none does: then the launch does not count
        either."""
        are_kept = kept_pairs(*self._states)
        return [block for block, keep in zip(every, are_kept, strict=True) if keep] or every


# The energy of timed blocks: machine counters, read before and after each.


class BlockEnergy(NamedTuple):
    """The energy that the machine used during a number of inferences."""

    joules: float
    inferences: int
    source: EnergySource


def block_energy(
    before: EnergyReading | None, after: EnergyReading | None, inferences: int
) -> BlockEnergy | None:
    """Returns the difference of two readings, None if a counter was silent in either."""
    if before is None or after is None or before.source != after.source:
        return None
    return BlockEnergy(after.joules - before.joules, inferences, after.source)


class SideEnergy(NamedTuple):
    """The joules of one inference."""

    joules: float
    source: EnergySource


def side_energy(blocks: list[BlockEnergy | None]) -> SideEnergy | None:
    """Returns the mean over all inferences of these blocks. None if a block was not counted, or the
    counter did not move because it is too coarse."""
    readings = [block for block in blocks if block is not None]
    joules = sum(block.joules for block in readings)
    if len(readings) < len(blocks) or joules <= 0:
        return None
    return SideEnergy(joules / sum(block.inferences for block in readings), readings[0].source)


# How the outputs of both sides differ on equal inputs. Nothing is judged by it: new weights compute
# new numbers. But a reviewer should hear that the classes of a classifier have changed places.

_EQUAL = 0.01
"""The largest difference, relative to the largest value, that rounding or another build makes."""
_SHOWN_OUTPUTS, _SHOWN_OF_NAME = 4, 60


def differing_outputs(
    tensors: Sides[tuple[ArtifactTensor, ...]], samples: Sides[tuple[OutputSample, ...]]
) -> str:
    """Returns how the outputs differ in name, type, shape and numbers, '' if they do not."""
    names = tensors.map(lambda outputs: [output.name for output in outputs])
    differences = list(_promised_otherwise(tensors))
    if not differences and names.base != names.head:
        differences = ["they are in another order"]
    values = Sides(
        dict(zip(names.base, samples.base, strict=False)),
        dict(zip(names.head, samples.head, strict=False)),
    )
    differences += [
        f"{_name(name)} {shown_differences}"
        for name in names.base
        if name in values.base and name in values.head
        if (shown_differences := _computed_otherwise(values.base[name], values.head[name]))
    ]
    more = (
        [f"{len(differences) - _SHOWN_OUTPUTS} more"] if len(differences) > _SHOWN_OUTPUTS else []
    )
    shown_differences = ", ".join([*differences[:_SHOWN_OUTPUTS], *more])
    return (
        f"outputs differ on equal inputs, which is not judged: {shown_differences}"
        if shown_differences
        else ""
    )


def _promised_otherwise(tensors: Sides[tuple[ArtifactTensor, ...]]) -> Iterator[str]:
    theirs = {each.name: each for each in tensors.head}
    for ours in tensors.base:
        other_side = theirs.pop(ours.name, None)
        if other_side is None:
            yield f"{_name(ours.name)} is gone"
        elif (ours.dtype, ours.shape) != (other_side.dtype, other_side.shape):
            yield f"{_name(ours.name)} is {_form(other_side)} and was {_form(ours)}"
    yield from (f"{_name(name)} is new" for name in theirs)


def _name(output: str) -> str:
    """Returns the beginning of a name, which a pull request chooses."""
    return output if len(output) <= _SHOWN_OF_NAME else f"{output[:_SHOWN_OF_NAME]}…"


def _form(output: ArtifactTensor) -> str:
    return f"{output.dtype}[{','.join(map(str, output.shape))}]"


def _computed_otherwise(base: OutputSample, head: OutputSample) -> str:
    if len(base.values) != len(head.values) or not base.values or base.is_text != head.is_text:
        return ""  # as their types and shapes say
    if base.is_text:
        count = sum(old != new for old, new in zip(base.values, head.values, strict=True))
        return f"in {count} of {plural(len(base.values), 'text')}" if count else ""
    if base.nans != head.nans:
        return (
            f"is NaN in {head.nans} of {plural(len(head.values), 'number')} and was in {base.nans}"
        )
    largest = max(map(abs, base.values)) or 1.0
    error = max(abs(old - new) for old, new in zip(base.values, head.values, strict=True)) / largest
    if error <= _EQUAL:
        return ""
    places = [max(range(len(s.values)), key=s.values.__getitem__) for s in (base, head)]
    place_text = " and has its largest in another place" if places[0] != places[1] else ""
    return f"by up to {100 * error:.0f}% of its largest value{place_text}"


# The random choices of a launch: its inputs, which process starts first, and the first side of each
# pair of blocks.

_MANY_CASES = 2**32
"""Larger than any number of cases, and small enough for a message."""


class LaunchOrder(NamedTuple):
    """`processes` start in this order, and pairs of `blocks` begin with these sides. `inputs` is
    the seed of both sides' inputs. `case` is the given case that both take: cases take turns, from
    a random first one."""

    inputs: int
    processes: tuple[Side, Side]
    blocks: tuple[Side, ...]
    case: int


def launch_order(seed: int, launch: int, pairs: int) -> LaunchOrder:
    """Returns the choices for one launch. Every launch has its own inputs, so a model whose time
    depends on them is seen on many. Pairs are ABBA quartets from a random side."""
    own = derive_seed(seed, "launch", launch)
    rng = random.Random(derive_seed(own, "order"))  # noqa: S311 -- nobody can guess the seed
    first = SIDES[rng.randrange(2)]
    begins: list[Side] = []
    for pair in range(pairs):
        begins.append(other_side(begins[-1]) if pair % 2 else SIDES[rng.randrange(2)])
    case = derive_seed(seed, "case") % _MANY_CASES + launch
    return LaunchOrder(derive_seed(own, "inputs"), (first, other_side(first)), tuple(begins), case)
