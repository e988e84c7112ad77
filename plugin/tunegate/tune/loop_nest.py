"""The loops of a sketch by the decisions that make them, before anything is lowered.

MetaSchedule's multi-level tiling splits every axis of a block by a sampled tile and orders the
parts (on a CPU: spatial, spatial, reduction, spatial, reduction, spatial). This reads the order
from the sketch's instructions, so tasks with different axes can be described in the same terms.
"""

import json
from collections import Counter
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

_SAMPLES = (
    "SamplePerfectTile",
    "SamplePartitionedTile",
    "SampleCategorical",
    "SampleComputeLocation",
)
_UNROLL = "meta_schedule.unroll_explicit"
_LEAST_THREADS = "meta_schedule.thread_extent_low_inclusive"
_MOST_THREADS = "meta_schedule.thread_extent_high_inclusive"
_OF_WARPS = "warp_execution"
_FETCH = "meta_schedule.cooperative_fetch"
_PIPELINE = "software_pipeline_stage"
DecisionValues = tuple[tuple[int, ...], ...]
"""The values of each decision of a sketch."""


class LoopNest(msgspec.Struct, frozen=True):
    """`order` has the loops of the tiled block, outermost first, each as (index of the sketch's
    decision, level of its tile). `copied_at` is the level at which a copy of the output is written
    back, 0 for the outermost, None if the block writes its output itself. `unrolls` are the step
    limits of unrolling, one for each value of the decision `unrolled_by`. On a GPU a block has
    `least_threads` to `most_threads`. `is_of_warps`: a whole warp computes a tile of a tensor core,
    where otherwise a thread computes a number.

    `axes` are (decision, number of the block's loop) of the tiled axes. On a GPU `fetches` are
    (operand, decision) of what is staged in shared memory, `widths` the vectors to choose from, and
    `copies` of it are held at once."""

    order: tuple[tuple[int, int], ...]
    copied_at: int | None = None
    unrolled_by: int | None = None
    unrolls: tuple[int, ...] = ()
    least_threads: int = 0
    most_threads: int = 0
    is_of_warps: bool = False
    axes: tuple[tuple[int, int], ...] = ()
    fetches: tuple[tuple[int, int], ...] = ()
    widths: tuple[int, ...] = ()
    copies: int = 1

    @property
    def spatial(self) -> tuple[int, ...]:
        """The decisions of axes that are not summed over: their tiles have the most levels."""
        return _by_depth(self.order)[0]

    @property
    def reduction_axes(self) -> tuple[int, ...]:
        """The decisions of axes that are summed over."""
        return _by_depth(self.order)[1]

    def unrolled_steps(self, values: DecisionValues) -> int:
        """Returns the most steps of an unrolled loop."""
        if self.unrolled_by is None:
            return 1
        return max(1, self.unrolls[values[self.unrolled_by][0]])


@lru_cache
def _by_depth(order: tuple[tuple[int, int], ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    levels = Counter(place for place, _ in order)
    deepest = tuple(place for place, count in levels.items() if count == max(levels.values()))
    return deepest, tuple(place for place in levels if place not in deepest)


def nest_of(signature: str) -> LoopNest | None:
    """Returns the loop nest of a sketch, given as `trace_form.Form.text` has it. None if no block
    was tiled."""
    reader = _Reader()
    for kind, inputs, attributes, outputs in json.loads(signature):
        reader.read(kind, inputs, attributes, outputs)
    return reader.nest if reader.nest.order else None


class _Reader:
    """Follows the variables of the instructions, numbered in the order of their creation."""

    def __init__(self) -> None:
        self.nest = LoopNest(())
        self._variables = self._decisions = 0
        self._sampled: dict[str, tuple[int, int]] = {}
        self._loops: dict[str, tuple[int, int]] = {}
        self._choices: dict[str, list[int]] = {}
        self._numbers: dict[str, int] = {}
        self._operands: dict[str, int] = {}

    def read(self, kind: str, inputs: list[Any], attributes: list[Any], outputs: int) -> None:
        names = [f"@{self._variables + number}" for number in range(outputs)]
        self._variables += outputs
        if kind in _SAMPLES:
            self._sampled |= {name: (self._decisions, level) for level, name in enumerate(names)}
            self._decisions += 1
        self._read_gpu(kind, inputs, attributes, names)
        match kind:
            case "SampleCategorical":
                self._choices[names[0]] = attributes[0]
            case "Split":
                self._add_axis(inputs[0], inputs[1:])
                pairs = zip(names, inputs[1:], strict=False)
                self._loops |= {n: self._sampled[f] for n, f in pairs if f in self._sampled}
            case "Reorder":
                order = tuple(self._loops[name] for name in inputs if name in self._loops)
                if len(order) > len(self.nest.order):
                    self.nest = replace(self.nest, order=order)
            case "ReverseComputeAt" if inputs[1] in self._loops:
                self.nest = replace(self.nest, copied_at=self._loops[inputs[1]][1])
            case "Annotate" if _UNROLL in attributes and inputs[1] in self._choices:
                place, _ = self._sampled[inputs[1]]
                steps = tuple(self._choices[inputs[1]])
                self.nest = replace(self.nest, unrolled_by=place, unrolls=steps)

    def _read_gpu(
        self, kind: str, inputs: list[Any], attributes: list[Any], names: list[str]
    ) -> None:
        """Follows what a sketch for a GPU has besides: limits of a block, and what is staged."""
        match kind:
            case "GetLoops":
                self._numbers |= {name: number for number, name in enumerate(names)}
            case "CacheRead" if attributes[1:] == ["shared"]:
                self._operands[names[0]] = attributes[0]
            case "Annotate" if _LEAST_THREADS in attributes:
                self.nest = replace(self.nest, least_threads=inputs[1])
            case "Annotate" if _MOST_THREADS in attributes:
                self.nest = replace(self.nest, most_threads=inputs[1])
            case "Annotate" if _OF_WARPS in attributes:
                self.nest = replace(self.nest, is_of_warps=True)
            case "Annotate" if _PIPELINE in attributes:
                self.nest = replace(self.nest, copies=1 + max(inputs[1]))
            case "Annotate" if _FETCH in attributes and inputs[0] in self._operands:
                fetch = self._operands[inputs[0]], self._sampled[inputs[1]][0]
                widths = tuple(self._choices[inputs[1]])
                self.nest = replace(self.nest, fetches=(*self.nest.fetches, fetch), widths=widths)

    def _add_axis(self, loop: str, factors: list[Any]) -> None:
        """Notes which loop of the block a tile splits. A later split of another block, as of what a
        copy moves, has no tile."""
        if loop in self._numbers and factors and factors[0] in self._sampled:
            place, _ = self._sampled[factors[0]]
            self.nest = replace(self.nest, axes=(*self.nest.axes, (place, self._numbers[loop])))
