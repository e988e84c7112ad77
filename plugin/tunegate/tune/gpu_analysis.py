"""The time of a tiled kernel on a GPU by analysis: what is known of a candidate that nobody ran.

The tile sizes of MetaSchedule's GPU sketch say what a block of threads loads, keeps and computes,
and the compute capability says what a multiprocessor has. So a kernel's time can be bounded without
a model that was fitted to anything:

- **Occupancy**: how many blocks a multiprocessor holds at once, by threads, registers, shared
  memory and slots (CUDA C++ Programming Guide, "Compute Capabilities").
- **Throughput or latency**, whichever is longer, for each tile of the sum (Hong and Kim, ISCA 2009:
  with enough warps the units are busy, with few every load is waited for).
- **Waves**: blocks run in rounds of what the card holds; the last round may be nearly empty
  (nvMatmulHeuristics calls it wave quantization).
- **Traffic** in sectors of 32 bytes, of whole tiles as they are staged (Roller, OSDI 2022).

The result is a share of the card's roofline, so that it means the same for each task. It ranks
well where sums are tiled in shared memory, and says nothing of the rest: docs/benchmarks has its
worth on recorded measurements of other people.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from tunegate.tune.loop_nest import DecisionValues, LoopNest

SHARED_MEMORY = "TUNEGATE_SHARED_MEMORY_BYTES"
"""The variable that tells a child how much shared memory a block of a kernel may use."""
USUAL_SHARED_MEMORY = 48 * 1024
"""The shared memory of a block that every card has."""


class Card(msgspec.Struct, frozen=True):
    """A GPU: `processors` are its multiprocessors. One of them holds `threads` in `blocks` and
    `shared_bytes`, does `lanes` multiply-adds of 32 bits a cycle, and gets `bytes_per_cycle` from
    memory while all do. Its tensor cores do `tensor_lanes` of float16 a cycle by `mma`."""

    processors: int
    threads: int
    blocks: int
    shared_bytes: int
    lanes: int
    bytes_per_cycle: float
    tensor_lanes: int


# Occupancy is the programming guide's table. Multiprocessors and bandwidth are those of the common
# data-center card of each capability: a card here says its own number of multiprocessors.
_CARDS = {
    75: Card(40, 1024, 16, 64 << 10, 64, 5.5, 512),  # T4
    80: Card(108, 2048, 32, 164 << 10, 64, 10.0, 1024),  # A100
    86: Card(72, 1536, 16, 100 << 10, 128, 5.5, 512),  # A10
    89: Card(58, 1536, 24, 100 << 10, 128, 3.0, 512),  # L4
    90: Card(132, 2048, 32, 228 << 10, 128, 14.0, 1024),  # H100
    100: Card(148, 2048, 32, 228 << 10, 128, 28.0, 1024),  # B200
    120: Card(188, 1536, 24, 100 << 10, 128, 4.0, 512),  # RTX PRO 6000
}


def card_of(arch: str, processors: int = 0) -> Card:
    """Returns the card for a target's `arch`, such as sm_90, with its own number of `processors`
    where that is known. An unknown capability is taken for the nearest older one."""
    digits = "".join(letter for letter in arch if letter.isdigit())
    older = [capability for capability in _CARDS if capability <= int(digits or 0)]
    card = _CARDS[max(older, default=min(_CARDS))]
    return msgspec.structs.replace(card, processors=processors) if processors else card


class Operand(msgspec.Struct, frozen=True):
    """A buffer that a sum reads, of elements of `bytes`. Each of its dimensions, the contiguous one
    last, is indexed by axes of the sum: (axis, stride) each."""

    bytes: int
    dimensions: tuple[tuple[tuple[int, int], ...], ...]

    def extents(self, tile: Sequence[int]) -> list[int]:
        """Returns the part of each dimension that a tile of the axes reads."""
        return [1 + sum(s * (tile[a] - 1) for a, s in of) for of in self.dimensions]


class GpuKernel(msgspec.Struct, frozen=True):
    """The reads of a sum, and the card that computes it, where a block may use `shared_bytes`.
    Operands are in the order of the sketch."""

    operands: tuple[Operand, ...]
    card: Card
    shared_bytes: int


_WARP, _SECTOR = 32, 32
_REGISTERS, _MAX_REGISTERS = 65_536, 255
_OWN_REGISTERS = 20
"""Registers of a thread for addresses and counters."""
_SCHEDULERS = 4
_MEMORY_CYCLES, _SHARED_CYCLES = 500, 25
"""Latencies from load to use, as microbenchmarks of Volta to Hopper have them, to a quarter."""
_CACHED = 2.5
"""The second-level cache's bandwidth over that of memory. Blocks share most of what they read."""
_LOOP_INSTRUCTIONS, _FETCH_INSTRUCTIONS, _SPILL_INSTRUCTIONS = 6, 6, 2
_FETCH_CYCLES = 8
_LAUNCH_CYCLES = 1500
_SPATIAL_LEVELS, _REDUCED_LEVELS = 5, 3


class _Block(NamedTuple):
    """One of `blocks`: its warps, and for each of its `steps` what a thread does. `depth` are
    the terms of the sum in a step, `sums` the numbers that a thread adds up."""

    blocks: int
    warps: int
    steps: int
    depth: int
    sums: int
    registers: int
    spills: int
    shared_bytes: int
    sector_bytes: int
    reads: int
    fetches: int
    is_unrolled: bool


class KernelAnalysis:
    """The analysis of one sketch: what its decisions make of a sum."""

    def __init__(self, nest: LoopNest, kernel: GpuKernel) -> None:
        self._card, self._limit, self._copies = kernel.card, kernel.shared_bytes, nest.copies
        self._unrolled_steps = nest.unrolled_steps
        self._places = [place for place, _ in sorted(nest.axes, key=lambda pair: pair[1])]
        self._spatial, self._reduced = nest.spatial, nest.reduction_axes
        places = dict(nest.fetches)
        self._reads = [(operand, places[number]) for number, operand in enumerate(kernel.operands)]
        self._widths = nest.widths

    def fits(self, values: DecisionValues) -> bool:
        """Returns whether a block needs no more shared memory than it may have."""
        return self._block(values).shared_bytes <= self._limit

    def share(self, values: DecisionValues) -> float:
        """Returns the share of the card's peak that a candidate may reach, 0 to 1; 0 if a block
        needs more shared memory than it may have."""
        block = self._block(values)
        if block.shared_bytes > self._limit:
            return 0.0
        return self._peak_cycles(values) / _cycles(block, self._card)

    def _block(self, values: DecisionValues) -> _Block:
        # A tile of a spatial loop: blocks, virtual threads, threads, and two levels in a thread.
        # `block_extents` are the extents that a block works on, `own` those of one thread.
        tiles = [values[place] for place in self._spatial]
        block_extents = [math.prod(values[place][1:]) for place in self._places]
        own = [
            tile[1] * tile[3] * tile[4] if len(tile) == _SPATIAL_LEVELS else 1
            for tile in (values[place] for place in self._places)
        ]
        threads = math.prod(tile[2] for tile in tiles)
        sums = math.prod(own)
        depth = math.prod(math.prod(values[place][1:]) for place in self._reduced)
        # For each operand: the bytes that a block brings to shared memory, in whole sectors of
        # global memory, and the numbers that a thread reads from there for its sums.
        staged_bytes = sectors = reads = operands = fetches = 0
        for operand, place in self._reads:
            extents = operand.extents(block_extents)
            run = extents[-1] * operand.bytes
            rows = math.prod(extents[:-1])
            staged_bytes += rows * run
            sectors += rows * -(-run // _SECTOR) * _SECTOR
            fetches += -(-rows * extents[-1] // (threads * self._widths[values[place][0]]))
            numbers = math.prod(operand.extents(own))
            operands += numbers
            reads += numbers * depth
        registers = sums + min(operands, 64) + _OWN_REGISTERS
        return _Block(
            blocks=math.prod(tile[0] for tile in tiles),
            warps=-(-threads // _WARP),
            steps=math.prod(values[place][0] for place in self._reduced),
            depth=depth,
            sums=sums,
            registers=min(_MAX_REGISTERS, -(-registers // 8) * 8),
            spills=max(0, registers - _MAX_REGISTERS),
            shared_bytes=staged_bytes * self._copies,
            sector_bytes=sectors,
            reads=reads,
            fetches=fetches,
            is_unrolled=sums * depth + reads <= self._unrolled_steps(values),
        )

    def _peak_cycles(self, values: DecisionValues) -> float:
        """Returns the cycles of the task on a card that is always busy."""
        whole = [math.prod(values[place]) for place in self._places]
        sizes = [math.prod(operand.extents(whole)) * operand.bytes for operand, _ in self._reads]
        card = self._card
        computing = math.prod(whole) / (card.lanes * card.processors)
        return max(computing, sum(sizes) / (card.bytes_per_cycle * card.processors))


def analysis_of(nest: LoopNest | None, kernel: GpuKernel | None) -> KernelAnalysis | None:
    """Returns the analysis of a sketch whose loops are blocks, virtual threads, threads and two
    inside a thread, with all operands staged in shared memory, and no tensor cores; else None."""
    if nest is None or kernel is None or nest.is_of_warps:
        return None
    levels = {sum(place == one for place, _ in nest.order) for one, _ in nest.axes}
    fetches = {number for number, _ in nest.fetches}
    if levels != {_SPATIAL_LEVELS, _REDUCED_LEVELS} or fetches != {*range(len(kernel.operands))}:
        return None
    return KernelAnalysis(nest, kernel)


def _resident(block: _Block, card: Card) -> int:
    """Returns the blocks that a multiprocessor holds at once."""
    by_threads = card.threads // (block.warps * _WARP)
    by_registers = _REGISTERS // (block.registers * block.warps * _WARP)
    by_memory = card.shared_bytes // max(1, block.shared_bytes)
    return max(1, min(card.blocks, by_threads, by_registers, by_memory))


def _cycles(block: _Block, card: Card) -> float:
    resident = _resident(block, card)
    rounds, last_blocks = divmod(block.blocks, card.processors * resident)
    last = -(-last_blocks // card.processors)
    cycles = rounds * _round_cycles(block, card, resident)
    return cycles + (_round_cycles(block, card, last) if last else 0) + _LAUNCH_CYCLES


def _round_cycles(block: _Block, card: Card, resident: int) -> float:
    """Returns the cycles in which a multiprocessor computes so many blocks at once: in each step
    its busiest unit, or what one warp waits for."""
    warps = resident * block.warps
    sums = block.sums * block.depth
    looping = 0 if block.is_unrolled else _LOOP_INSTRUCTIONS * block.depth
    spilling = _SPILL_INSTRUCTIONS * block.spills * block.depth
    instructions = sums + block.reads + _FETCH_INSTRUCTIONS * block.fetches + looping + spilling
    busy = max(
        warps * sums * _WARP / card.lanes,
        warps * instructions / _SCHEDULERS,
        warps * block.reads,  # shared memory serves one warp a cycle
        resident * block.sector_bytes / (card.bytes_per_cycle * _CACHED),
    )
    waiting = _MEMORY_CYCLES + _FETCH_CYCLES * block.fetches
    chain = waiting + max(2 * instructions, _SHARED_CYCLES * block.depth)
    return block.steps * max(busy, chain)


class Analysis:
    """Expects time ratios of samples by their column `column`, a roofline share; a sample without
    one gets that of a poor candidate."""

    _UNKNOWN = 0.01

    def __init__(self, column: int) -> None:
        self._column = column

    def ratios(self, rows: Sequence[Sequence[float]]) -> np.ndarray:
        shares = np.array([row[self._column] for row in rows], dtype=np.float32)
        return np.where(np.isnan(shares), self._UNKNOWN, shares)
