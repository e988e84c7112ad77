"""Samples: candidates as decisions alone, made by the thousand without the compiler.

A sample is random, a changed good schedule, or a cross of two good ones. The filter decides which
to compile. (Draft-then-verify is Pruner's order, ASPLOS 2025; the changes are those of
MetaSchedule's mutators.)
"""

import math
import random
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from tunegate.tune.gpu_analysis import Analysis, analysis_of
from tunegate.tune.loop_nest import DecisionValues, LoopNest
from tunegate.tune.prior import NEST_COLUMNS, Sketch, gpu_columns, innermost, nest_columns
from tunegate_cache.format.decisions import SamplingInstruction
from tunegate_cache.format.records import Decision

RANDOM_SHARE, CROSSED_SHARE = 0.5, 0.2
"""The shares of a pool that are random and crossed. The rest are changed good schedules."""
SELDOM = 0.25
"""The relative probability of a template that is seldom the best."""
_MORE_CHANGES = 0.4
_FIRST_LOCATION = -2


class ScheduleSample(NamedTuple):
    template: str
    decisions: tuple[Decision, ...]


class SampleSpace:
    """The decisions of a search space. `templates` have the `extent` of every tile, and for a
    compute location the highest one seen. Templates in `seldom` get fewer random samples; good ones
    among them are followed like any other."""

    def __init__(
        self,
        templates: Mapping[str, Sequence[SamplingInstruction]],
        rng: random.Random,
        seldom: Collection[str] = (),
    ) -> None:
        self._templates = {digest: tuple(sampling) for digest, sampling in templates.items()}
        self._weights = [SELDOM if digest in seldom else 1.0 for digest in self._templates]
        self._rng = rng

    def pool(self, good: Sequence[ScheduleSample], size: int) -> list[ScheduleSample]:
        """Returns at most `size` different samples, none of `good`. A small space gives fewer."""
        samples: dict[ScheduleSample, None] = {}
        good_samples = set(good)
        for _ in range(2 * size):
            sample = self._sample(good)
            if sample not in good_samples:
                samples[sample] = None
            if len(samples) == size:
                break
        return list(samples)

    def _sample(self, good: Sequence[ScheduleSample]) -> ScheduleSample:
        luck = self._rng.random()
        if not good or luck < RANDOM_SHARE:
            return self._random()
        one = self._rng.choice(good)
        if luck < RANDOM_SHARE + CROSSED_SHARE:
            return self._cross(one, self._rng.choice(good))
        return self._mutate(one)

    def _random(self) -> ScheduleSample:
        (template,) = self._rng.choices(list(self._templates), self._weights)
        sampling = self._templates[template]
        return ScheduleSample(template, tuple((s.index, self._draw_decision(s)) for s in sampling))

    def _mutate(self, sample: ScheduleSample) -> ScheduleSample:
        """Returns the sample with some decisions changed: one most often, two less often, and so
        on."""
        decisions = list(sample.decisions)
        sampling = self._templates[sample.template]
        while decisions:  # a sketch may leave nothing to decide
            place = self._rng.randrange(len(decisions))
            index, values = decisions[place]
            decisions[place] = (index, self._nearby(sampling[place], values))
            if self._rng.random() > _MORE_CHANGES:
                return ScheduleSample(sample.template, tuple(decisions))
        return sample

    def _cross(self, first: ScheduleSample, other: ScheduleSample) -> ScheduleSample:
        if first.template != other.template:
            return self._mutate(first)
        pairs = zip(first.decisions, other.decisions, strict=True)
        return ScheduleSample(first.template, tuple(self._rng.choice(pair) for pair in pairs))

    def _draw_decision(self, sampling: SamplingInstruction) -> tuple[int, ...]:
        match sampling.kind:
            case "perfect-tile":
                return self._tile(sampling)
            case "categorical":
                return (self._rng.randrange(sampling.candidates),)
            case "compute-location":
                return (self._rng.randint(_FIRST_LOCATION, sampling.extent or 0),)
            case "partitioned-tile":
                # The parts of this decision depend on each other, so it stays as it is.
                return (*((1,) * (sampling.n - 1)), sampling.extent or 1)

    def _tile(self, sampling: SamplingInstruction) -> tuple[int, ...]:
        """Returns a random tile: every prime factor of the extent at some level, the innermost
        within its bound."""
        factors = [1] * sampling.n
        for prime in primes(sampling.extent or 1):
            factors[self._rng.randrange(sampling.n)] *= prime
        limit = sampling.max_innermost
        while limit and factors[-1] > limit and sampling.n > 1:
            prime = self._rng.choice(primes(factors[-1]))
            factors[-1] //= prime
            factors[self._rng.randrange(sampling.n - 1)] *= prime
        return tuple(factors)

    def _nearby(self, sampling: SamplingInstruction, values: tuple[int, ...]) -> tuple[int, ...]:
        if sampling.kind == "perfect-tile" and sampling.n > 1:
            return self._move_factor(sampling, values)
        if sampling.kind == "partitioned-tile":
            return values
        return self._draw_decision(sampling)

    def _move_factor(
        self, sampling: SamplingInstruction, values: tuple[int, ...]
    ) -> tuple[int, ...]:
        """Returns the tile with one factor moved to another level."""
        origins = [place for place, value in enumerate(values) if value > 1]
        if not origins:
            return values
        origin = self._rng.choice(origins)
        goal = self._rng.choice([place for place in range(sampling.n) if place != origin])
        factor = self._rng.choice(_divisors_above_one(values[origin]))
        tile = list(values)
        tile[origin] //= factor
        tile[goal] *= factor
        if sampling.max_innermost and tile[-1] > sampling.max_innermost:
            return values
        return tuple(tile)


@lru_cache(maxsize=4096)
def primes(number: int) -> tuple[int, ...]:
    """Returns the prime factors, each as often as it divides."""
    factors = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return (*factors, number) if number > 1 else tuple(factors)


@lru_cache(maxsize=4096)
def _divisors_above_one(number: int) -> tuple[int, ...]:
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return tuple(sorted({*small[1:], *(number // d for d in small)}))


# The features of a sample for a surrogate: its decisions, and what they make together. Nothing is
# lowered or replayed, so the features of a thousand samples take milliseconds.

_LEVELS = 4


class SampleFeatures:
    """First the columns that mean the same for every task (the loop nest that the decisions make,
    on a GPU also the share of its peak by analysis, and its threads), then those of one task: its
    template, the logarithm of every tile factor, the other decisions by rank, and for loops of each
    depth the volume of all tiles at each level."""

    def __init__(
        self,
        templates: Mapping[str, Sequence[SamplingInstruction]],
        sketches: Mapping[str, Sketch],
    ) -> None:
        self._templates, self._sketches = templates, sketches
        self._numbers = {digest: number for number, digest in enumerate(sorted(templates))}
        widths = [sum(s.n for s in sampling) for sampling in templates.values()]
        self._width = max(widths, default=0)
        self._is_of_gpu = any(sketch.is_of_gpu for sketch in sketches.values())
        self._analyses = {d: analysis_of(each.nest, each.kernel) for d, each in sketches.items()}

    @property
    def analysis(self) -> Analysis | None:
        """The expectation of candidates by analysis, None where a template has no tiles that it can
        tell of, or has tensor cores, which it does not know."""
        nests = [sketch.nest for sketch in self._sketches.values()]
        if any(nest is not None and nest.is_of_warps for nest in nests):
            return None
        return Analysis(NEST_COLUMNS) if any(self._analyses.values()) else None

    def of(self, sample: ScheduleSample) -> list[float]:
        sketch, values = self._sketches[sample.template], _values_of(sample)
        columns = nest_columns(sketch, values)
        if self._is_of_gpu:
            columns += gpu_columns(sketch.nest, self._analyses[sample.template], values)
        return columns + self._own_columns(sample)

    def kind(self, sample: ScheduleSample) -> tuple[str, DecisionValues]:
        """Returns the kind of a sample. Samples of one kind have the same innermost loops."""
        return sample.template, innermost(self._sketches[sample.template], _values_of(sample))

    def is_hopeless(self, sample: ScheduleSample, kind: str) -> bool:
        """Returns whether a sample is not worth compiling for a target of this kind."""
        values, nest = _values_of(sample), self._sketches[sample.template].nest
        if kind != "cuda":
            return is_bloated(nest, values)
        analysis = self._analyses[sample.template]
        return exceeds_a_gpu(nest, values) or (analysis is not None and not analysis.fits(values))

    def _own_columns(self, sample: ScheduleSample) -> list[float]:
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


def _values_of(sample: ScheduleSample) -> DecisionValues:
    return tuple(values for _, values in sample.decisions)


def _volumes(volumes: Mapping[int, Sequence[float]]) -> list[float]:
    """Returns features of the spatial tiles (the deepest) and of the reduction tiles (the others),
    level by level."""
    deepest = max(volumes, default=0)
    spatial = list(volumes.get(deepest, ()))
    others = [
        size for depth, sizes in sorted(volumes.items()) if depth != deepest for size in sizes
    ]
    return [*_pad_levels(spatial), *_pad_levels(others), sum(spatial[-1:]) + sum(others[-1:])]


def _pad_levels(values: Sequence[float]) -> list[float]:
    return [*values[:_LEVELS], *([math.nan] * (_LEVELS - len(values)))]


# The size of a sample's code, before anything is lowered. Samples that would keep the compiler busy
# are not tried.
#
# Trimmer (IEEE CLOUD 2022) rejects candidates by predicted cost alone. Here some took a hundred
# times as long to compile without being faster. On CPUs the cause is the copy of an output tile,
# unrolled to the last statement (figures in docs/benchmarks).

MAX_STATEMENTS = 255


def is_bloated(nest: LoopNest | None, values: DecisionValues) -> bool:
    return nest is not None and copied_statements(nest, values) > MAX_STATEMENTS


def copied_statements(nest: LoopNest, values: DecisionValues) -> int:
    """Returns the vectors that the unrolled copy of an output tile moves, 0 without a copy or if
    the copy is a loop."""
    if nest.copied_at is None:
        return 0
    tile = math.prod(math.prod(values[place][nest.copied_at + 1 :]) for place in nest.spatial)
    innermost, _ = nest.order[-1]
    vectors = tile // values[innermost][-1]
    return vectors if vectors <= nest.unrolled_steps(values) else 0


# The threads and registers of a sample on a GPU. A block with fewer threads than a warp, or with
# more than a block can have, is refused when it is replayed: every third random sample was. And
# MetaSchedule keeps the sums of a thread in registers, those of its virtual threads too. Where they
# are more than a thread or a block can have, the assembler puts them into memory: such a kernel
# takes longest to compile and is never fast.

MAX_OF_THREAD, MAX_OF_BLOCK = 255, 65_536
"""Registers of 32 bits, alike on all of NVIDIA's architectures since 2012."""
_WARP = 32
_GPU_LEVELS = 5
"""Those of a spatial tile: blocks, virtual threads, threads, and two inside a thread. A tile for
tensor cores has blocks twice, warps, and two inside a warp."""


def exceeds_a_gpu(nest: LoopNest | None, values: DecisionValues) -> bool:
    """Returns whether a block has too few or too many threads, or the sums alone need more
    registers than there are."""
    tiles = [values[place] for place in nest.spatial] if nest is not None else []
    if nest is None or not tiles or any(len(tile) != _GPU_LEVELS for tile in tiles):
        return False
    threads = math.prod(tile[2] for tile in tiles) * (_WARP if nest.is_of_warps else 1)
    if nest.most_threads and not nest.least_threads <= threads <= nest.most_threads:
        return True
    if nest.is_of_warps:
        return False
    sums = math.prod(virtual * outer * inner for _, virtual, _, outer, inner in tiles)
    return sums > MAX_OF_THREAD or sums * threads > MAX_OF_BLOCK
