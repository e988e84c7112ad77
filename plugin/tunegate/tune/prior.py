"""Measurements of other tasks as training data, in terms that fit any task.

One-Shot Tuner (CC 2022) and MetaTune (2021) train a cost model on many tasks and let it choose for
unseen ones. A row here describes the loop nest that a sketch's decisions make, not the decisions
themselves, so it means the same for any shape.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np

from tunegate.tune.gpu_analysis import GpuKernel, KernelAnalysis, analysis_of
from tunegate.tune.loop_nest import DecisionValues, LoopNest
from tunegate_cache.format.decompression import decompress


class VectorRegisters(msgspec.Struct, frozen=True):
    """A target's `count` vector registers, each of `lanes` numbers of 32 bits. Older data without
    them are from AVX-512."""

    lanes: int = 16
    count: int = 32


class Sketch(msgspec.Struct, frozen=True):
    """The part of a template that is the same for any task; `variant` is that of the workload.
    Without a loop nest it predicts nothing. A step of the innermost loop computes `lanes` numbers,
    in the target's `registers`. `kernel` is known of sums that a GPU computes."""

    variant: str
    nest: LoopNest | None
    lanes: int = 1
    registers: VectorRegisters = VectorRegisters()
    kernel: GpuKernel | None = None

    @property
    def is_of_gpu(self) -> bool:
        """True if threads are bound to its loops, of a sum or of anything else."""
        return self.kernel is not None or (self.nest is not None and self.nest.most_threads > 0)


class TaskExperience(msgspec.Struct, frozen=True):
    """`rows` are (sketch index, milliseconds, decisions), measured on `device`, a CPU's name, with
    `threads` threads. `layer` is a digest equal in all `models` that have the layer, and `kind` the
    kind of layer; data are split by them. `workload` is the layer's key in the cache. Older data
    lack these: 0 threads means unknown."""

    name: str
    sketches: tuple[Sketch, ...]
    rows: tuple[tuple[int, float, DecisionValues], ...]
    kind: str = ""
    layer: str = ""
    workload: str = ""
    models: tuple[str, ...] = ()
    device: str = ""
    threads: int = 0

    @property
    def is_of_gpu(self) -> bool:
        return any(sketch.is_of_gpu for sketch in self.sketches)


class _Tile(NamedTuple):
    """Iterations of loops of one kind and level, as base-2 logarithms."""

    lanes: float
    second: float
    inner: float
    middle: float
    middle_last: float
    outer: float
    reduced_inner: float
    reduced_outer: float
    axis: float


def nest_columns(sketch: Sketch, values: DecisionValues) -> list[float]:
    """Returns the features of the loops: (`NEST_COLUMNS`,) floats, all NaN without a loop nest. The
    last three are the share of registers that holds the sums, how full these are, and the size of a
    register. A tile that needs more registers than exist is slower by an order of magnitude on any
    target."""
    if sketch.nest is None:
        return [math.nan] * NEST_COLUMNS
    tile = _tile(sketch.nest, values, sketch.lanes)
    lanes, widest = round(2**tile.lanes), sketch.registers.lanes
    registers = math.ceil(lanes / widest)
    unroll = _log([sketch.nest.unrolled_steps(values)])
    steps = tile.inner - tile.lanes
    body = steps + tile.reduced_inner
    return [
        *tile,
        *(float(lanes % width == 0) for width in (max(1, widest // 2), widest)),
        steps,
        tile.inner + tile.middle,
        tile.reduced_inner + tile.reduced_outer,
        unroll,
        body,
        float(body <= unroll),
        float(body + tile.middle <= unroll),
        -1.0 if sketch.nest.copied_at is None else float(sketch.nest.copied_at),
        float(sketch.variant == "im2col"),
        float(sketch.variant == "group-vectors"),
        _log([registers]) + steps - _log([sketch.registers.count]),
        lanes / (registers * widest),
        _log([widest]),
    ]


NEST_COLUMNS = len(_Tile._fields) + 15

_GPU_LEVELS = 5
"""Levels of a spatial tile on a GPU: blocks, virtual threads, threads, and two in a thread."""
GPU_COLUMNS = 4


def gpu_columns(
    nest: LoopNest | None, analysis: KernelAnalysis | None, values: DecisionValues
) -> list[float]:
    """Returns what a GPU makes of the tiles: (`GPU_COLUMNS`,) floats, NaN where it is unknown. The
    share of the card's peak by analysis, then blocks, virtual threads and threads as base-2
    logarithms."""
    share = math.nan if analysis is None else analysis.share(values)
    tiles = [] if nest is None else [values[place] for place in nest.spatial]
    if not tiles or any(len(tile) != _GPU_LEVELS for tile in tiles):
        return [share, math.nan, math.nan, math.nan]
    return [share, *(_log([tile[level] for tile in tiles]) for level in range(3))]


def columns_of(task: TaskExperience) -> list[list[float]]:
    """Returns the features of each row that mean the same for every task of its kind of target."""
    sketches, is_of_gpu = task.sketches, task.is_of_gpu
    analyses = [analysis_of(sketch.nest, sketch.kernel) for sketch in sketches]
    return [
        nest_columns(sketches[number], values)
        + (gpu_columns(sketches[number].nest, analyses[number], values) if is_of_gpu else [])
        for number, _, values in task.rows
    ]


def innermost(sketch: Sketch, values: DecisionValues) -> DecisionValues:
    """Returns the decisions that matter most: how much of each axis the innermost loops do. Without
    a loop nest, all decisions."""
    if sketch.nest is None:
        return values
    return ((*(values[place][-1] for place in sketch.nest.spatial),),)


def _tile(nest: LoopNest, values: DecisionValues, lanes: int) -> _Tile:
    spatial = nest.spatial
    deepest = len(values[spatial[0]])
    inner = [values[p][level] for p, level in nest.order if p in spatial and level == deepest - 1]
    middle = [values[p][level] for p, level in nest.order if p in spatial and level == deepest - 2]
    last = nest.order[-1][0]
    inner[-1] *= lanes
    return _Tile(
        lanes=_log(inner[-1:]),
        second=_log(inner[-2:-1]),
        inner=_log(inner),
        middle=_log(middle),
        middle_last=_log(middle[-1:]),
        outer=sum(_log(values[p][:-2]) for p in spatial),
        reduced_inner=sum(_log(values[p][-1:]) for p in nest.reduction_axes),
        reduced_outer=sum(_log(values[p][:-1]) for p in nest.reduction_axes),
        axis=_log(values[last]) + _log([lanes]),
    )


def _log(factors: Sequence[int]) -> float:
    return math.log2(math.prod(factors))


# A cost model before the first trial: boosted trees on measurements of other operators. The
# measurements are in `data/`, one packed file for each kind of target. The trees are fitted once in
# a process, so only numbers are ever loaded. docs/benchmarks has its worth on unseen operators.

_FOLDER = Path(__file__).parent / "data"
_ROUNDS = 300
_PARAMETERS = {
    "grow_policy": "lossguide",
    "max_depth": 0,
    "max_leaves": 64,
    "eta": 0.05,
    "min_child_weight": 4,
    "subsample": 0.8,
    "colsample_bytree": 0.8,
}
_FAR = 3.0
"""The distance that a column may lie outside the fitted data: 8x, in base-2 logarithms."""


class _Fitted(NamedTuple):
    """The trees, the mean of their labels, and the fitted range of each column."""

    trees: BoostedTrees
    mean: float
    least: np.ndarray
    most: np.ndarray


class Expectation(Protocol):
    """The expected speed of samples before a task has results of its own."""

    def ratios(self, rows: Sequence[Sequence[float]]) -> np.ndarray:
        """Returns the expected ratios, best time / time, up to a factor: (n,) floats."""
        ...


class Prior:
    """Predicts time ratios, best / time. Fitted on first use, because not every run searches."""

    def __init__(self, tasks: Sequence[TaskExperience]) -> None:
        self._tasks = tasks
        self._width = NEST_COLUMNS + GPU_COLUMNS * any(task.is_of_gpu for task in tasks)

    def ratios(self, rows: Sequence[Sequence[float]]) -> np.ndarray:
        """Returns the predicted ratios of n samples, (n,) float32. Their rows begin with the
        columns of their loop nest, and on a GPU with what that makes of it. A sample without a nest
        gets the mean."""
        columns = self._columns_of(rows)
        ratios = self._fit.trees.predict(columns)
        is_unknown = np.isnan(columns[:, :NEST_COLUMNS]).all(axis=1)
        return np.where(is_unknown, self._fit.mean, ratios)

    def knows(self, rows: Sequence[Sequence[float]]) -> np.ndarray:
        """Returns a mask (n,) bool: whether each sample has a loop nest near the fitted data."""
        columns = self._columns_of(rows)
        low, high = self._fit.least - _FAR, self._fit.most + _FAR
        inside = (columns >= low) & (columns <= high)
        return np.asarray(inside.all(axis=1))

    @cached_property
    def _fit(self) -> _Fitted:
        rows = [row for task in self._tasks for row in columns_of(task)]
        ratios = np.array([ratio for task in self._tasks for ratio in ratios_of(task)])
        features = np.array(rows, dtype=np.float32)
        return _Fitted(
            trees=BoostedTrees(features, ratios, _PARAMETERS, rounds=_ROUNDS),
            mean=float(np.mean(ratios)),
            least=np.nanmin(features, axis=0),
            most=np.nanmax(features, axis=0),
        )

    def _columns_of(self, rows: Sequence[Sequence[float]]) -> np.ndarray:
        return np.array(rows, dtype=np.float32)[:, : self._width]


@cache
def prior_of(kind: str) -> Prior | None:
    """Returns the prior for `llvm` or `cuda`, None without measurements."""
    tasks = experience_of(kind)
    return Prior(tasks) if tasks else None


def experience_of(kind: str) -> list[TaskExperience]:
    file = _FOLDER / f"{kind}.jsonl.zst"
    if not file.exists():
        return []
    return msgspec.json.Decoder(TaskExperience).decode_lines(decompress(file.read_bytes()))


def ratios_of(task: TaskExperience) -> list[float]:
    best = min(milliseconds for _, milliseconds, _ in task.rows)
    return [best / milliseconds for _, milliseconds, _ in task.rows]


# The only importer of xgboost: fits trees, and predicts.

_DEFAULTS = {"objective": "reg:squarederror", "nthread": 1, "seed": 1, "verbosity": 0}


class BoostedTrees:
    """Boosted trees over the features of candidates. With `expected`, the trees correct that
    prediction of each row."""

    def __init__(
        self,
        features: np.ndarray,
        labels: np.ndarray,
        parameters: Mapping[str, Any],
        *,
        rounds: int,
        baseline: np.ndarray | None = None,
    ) -> None:
        # Imported on first fit: it is a sixth of a search's start.
        import xgboost  # noqa: PLC0415

        matrix = xgboost.DMatrix(features, labels, base_margin=baseline)
        self._trees = xgboost.train({**_DEFAULTS, **parameters}, matrix, rounds)

    def predict(self, features: np.ndarray, baseline: np.ndarray | None = None) -> np.ndarray:
        import xgboost  # noqa: PLC0415

        return np.asarray(self._trees.predict(xgboost.DMatrix(features, base_margin=baseline)))
