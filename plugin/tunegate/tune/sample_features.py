"""The features of a sample for a surrogate: its decisions, and what they make together.

Nothing is lowered or replayed, so the features of a thousand samples take milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tunegate.tune.loop_nest import Decided, LoopNest
from tunegate.tune.prior import Sketch, innermost, nest_columns
from tunegate.tune.samples import ScheduleSample
from tunegate_cache.format.decisions import SamplingInstruction

_LEVELS = 4


class SampleFeatures:
    """First the columns that mean the same for every task (the loop nest that the decisions make),
    then those of one task: its template, the logarithm of every tile factor, the other decisions by
    rank, and for loops of each depth the volume of all tiles at each level."""

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
        """Returns the kind of a sample. Samples of one kind have the same innermost loops."""
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
    """Returns features of the spatial tiles (the deepest) and of the reduction tiles (the others),
    level by level."""
    deepest = max(volumes, default=0)
    spatial = list(volumes.get(deepest, ()))
    others = [
        size for depth, sizes in sorted(volumes.items()) if depth != deepest for size in sizes
    ]
    return [*_padded(spatial), *_padded(others), sum(spatial[-1:]) + sum(others[-1:])]


def _padded(values: Sequence[float]) -> list[float]:
    return [*values[:_LEVELS], *([math.nan] * (_LEVELS - len(values)))]


# The size of a sample's code, before anything is lowered. Samples that would keep the compiler busy
# are not tried.
#
# Trimmer (IEEE CLOUD 2022) rejects candidates by predicted cost alone. Here some took a hundred
# times as long to compile without being faster. On CPUs the cause is the copy of an output tile,
# unrolled to the last statement (figures in docs/benchmarks).

MAX_STATEMENTS = 255


def is_bloated(nest: LoopNest | None, decided: Decided) -> bool:
    return nest is not None and copied_statements(nest, decided) > MAX_STATEMENTS


def copied_statements(nest: LoopNest, decided: Decided) -> int:
    """Returns the vectors that the unrolled copy of an output tile moves, 0 without a copy or if
    the copy is a loop."""
    if nest.copied_at is None:
        return 0
    tile = math.prod(math.prod(decided[place][nest.copied_at + 1 :]) for place in nest.spatial)
    innermost, _ = nest.order[-1]
    vectors = tile // decided[innermost][-1]
    return vectors if vectors <= nest.unrolled_steps(decided) else 0
