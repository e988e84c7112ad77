"""The loops of a sketch by the decisions that make them, before anything is lowered.

MetaSchedule's multi-level tiling splits every axis of a block by a sampled tile and orders the
parts (on a CPU: spatial, spatial, reduction, spatial, reduction, spatial). This reads the order
from the sketch's instructions, so tasks with different axes can be described in the same terms.
"""

from __future__ import annotations

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
Decided = tuple[tuple[int, ...], ...]
"""The values of each decision of a sketch."""


class LoopNest(msgspec.Struct, frozen=True):
    """`order` has the loops of the tiled block, outermost first, each as (index of the sketch's
    decision, level of its tile). `copied_at` is the level at which a copy of the output is written
    back, 0 for the outermost, None if the block writes its output itself. `unrolls` are the step
    limits of unrolling, one for each value of the decision `unrolled_by`. On a GPU a block has
    `least_threads` to `most_threads`. `is_of_warps`: a whole warp computes a tile of a tensor core,
    where otherwise a thread computes a number."""

    order: tuple[tuple[int, int], ...]
    copied_at: int | None = None
    unrolled_by: int | None = None
    unrolls: tuple[int, ...] = ()
    least_threads: int = 0
    most_threads: int = 0
    is_of_warps: bool = False

    @property
    def spatial(self) -> tuple[int, ...]:
        """The decisions of axes that are not summed over: their tiles have the most levels."""
        return _by_depth(self.order)[0]

    @property
    def reduced(self) -> tuple[int, ...]:
        """The decisions of axes that are summed over."""
        return _by_depth(self.order)[1]

    def unrolled_steps(self, decided: Decided) -> int:
        """Returns the most steps of an unrolled loop."""
        if self.unrolled_by is None:
            return 1
        return max(1, self.unrolls[decided[self.unrolled_by][0]])


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

    def read(self, kind: str, inputs: list[Any], attributes: list[Any], outputs: int) -> None:
        names = [f"@{self._variables + number}" for number in range(outputs)]
        self._variables += outputs
        if kind in _SAMPLES:
            self._sampled |= {name: (self._decisions, level) for level, name in enumerate(names)}
            self._decisions += 1
        match kind:
            case "SampleCategorical":
                self._choices[names[0]] = attributes[0]
            case "Split":
                pairs = zip(names, inputs[1:], strict=False)
                self._loops |= {n: self._sampled[f] for n, f in pairs if f in self._sampled}
            case "Reorder":
                order = tuple(self._loops[name] for name in inputs if name in self._loops)
                if len(order) > len(self.nest.order):
                    self.nest = replace(self.nest, order=order)
            case "ReverseComputeAt" if inputs[1] in self._loops:
                self.nest = replace(self.nest, copied_at=self._loops[inputs[1]][1])
            case "Annotate" if _LEAST_THREADS in attributes:
                self.nest = replace(self.nest, least_threads=inputs[1])
            case "Annotate" if _MOST_THREADS in attributes:
                self.nest = replace(self.nest, most_threads=inputs[1])
            case "Annotate" if _OF_WARPS in attributes:
                self.nest = replace(self.nest, is_of_warps=True)
            case "Annotate" if _UNROLL in attributes and inputs[1] in self._choices:
                place, _ = self._sampled[inputs[1]]
                steps = tuple(self._choices[inputs[1]])
                self.nest = replace(self.nest, unrolled_by=place, unrolls=steps)
