"""Features of a sample for a surrogate: its decisions, and their combined meaning.

No lowering, no replay: features of a thousand samples cost milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tunegate.cost_model.code_size import is_bloated
from tunegate.cost_model.experience import Sketch, innermost, nest_columns
from tunegate.cost_model.loop_nest import Decided
from tunegate.tuning.schedule_samples import ScheduleSample
from tunegate_cache.format.decisions import SamplingInstruction

_LEVELS = 4


class SampleFeatures:
    """First the columns that mean the same for every task (what the decisions make of the
    loop nest of their sketch), then those of one task: its template, the logarithm of every
    tile factor and the other decisions by their order, and for loops of each depth the volume
    of all tiles at each level."""

    def __init__(
        self,
        templates: Mapping[str, Sequence[SamplingInstruction]],
        sketches: Mapping[str, Sketch],
    ) -> None:
        self._templates, self._sketches = templates, sketches
        self._numbers = {digest: number for number, digest in enumerate(sorted(templates))}
        widths = [sum(s.n for s in sampling) for sampling in templates.values()]
        self._width = max(widths, default=0)

    def of(self, sample: ScheduleSample) -> list[float]:
        return nest_columns(self._sketches[sample.template], _decided(sample)) + self._own(sample)

    def kind(self, sample: ScheduleSample) -> tuple[str, Decided]:
        """Samples of one kind differ in what matters less than their innermost loops."""
        return sample.template, innermost(self._sketches[sample.template], _decided(sample))

    def is_bloated(self, sample: ScheduleSample) -> bool:
        return is_bloated(self._sketches[sample.template].nest, _decided(sample))

    def _own(self, sample: ScheduleSample) -> list[float]:
        sampling = self._templates[sample.template]
        columns = [float(self._numbers[sample.template])]
        volumes: dict[int, list[float]] = {}
        for instruction, (_, values) in zip(sampling, sample.decisions, strict=True):
            if instruction.kind not in {"perfect-tile", "partitioned-tile"}:
                columns.append(float(values[0]))
                continue
            logs = [math.log2(value) for value in values]
            columns += logs
            sums = volumes.setdefault(len(values), [0.0] * len(values))
            for level, size in enumerate(logs):
                sums[level] += size
        columns += [math.nan] * (1 + self._width - len(columns))
        return columns + _volumes(volumes)


def _decided(sample: ScheduleSample) -> Decided:
    return tuple(values for _, values in sample.decisions)


def _volumes(volumes: Mapping[int, Sequence[float]]) -> list[float]:
    """Features of the spatial tiles (the deepest) and of the reduction
    tiles (the others), level by level."""
    deepest = max(volumes, default=0)
    spatial = list(volumes.get(deepest, ()))
    others = [
        size for depth, sizes in sorted(volumes.items()) if depth != deepest for size in sizes
    ]
    return [*_padded(spatial), *_padded(others), sum(spatial[-1:]) + sum(others[-1:])]


def _padded(values: Sequence[float]) -> list[float]:
    return [*values[:_LEVELS], *([math.nan] * (_LEVELS - len(values)))]
