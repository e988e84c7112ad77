"""The algorithms that a convolution may be computed by: unfolded (im2col), vectors of groups, or
the one that a target asks for."""

import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import tvm
from tvm.s_tir import Schedule
from tvm.tirx import IndexMap

from tunegate.compiler.schedules.convolutions import window_of_three
from tunegate.compiler.schedules.grouped_convolutions import group_vectors
from tunegate.compiler.schedules.unscheduled import with_symbol_of, with_unscheduled
from tunegate.compiler.search.workload import canonical_workload
from tunegate.config import AUTO

# Computes a convolution with a window as a matrix product over the unfolded image (im2col). Which
# of the two is faster depends on the extents: a prime width leaves the direct form no good tile,
# many channels make the unfolded image large. The search measures both.

_MAIN = "main"
_MAX_BYTES = 64 * 1024 * 1024
"""The largest unfolded image in bytes: no cache holds more."""
_SPATIAL, _REDUCE = 0, 2
_FIRST, _LAST = 1, 3
"""The positions of the output channels among the spatial loops."""
_IMAGE = [_SPATIAL] * 4 + [_REDUCE] * 3


def unfolded_image(module: Any) -> Any | None:
    """Returns the function as a matrix product, None if there is nothing to unfold."""
    product = _im2col(Schedule(module))
    return None if product is None else canonical_workload(product[_MAIN]).module


class _Convolution(NamedTuple):
    """A block with loops over batch, height, width and output channels in some order, then over the
    window and input channels. `channels` is the position of the output channels, `loop_type` the
    type of the loops."""

    block: Any
    extents: tuple[int, ...]
    channels: int
    loop_type: str

    @property
    def places(self) -> tuple[int, ...]:
        """The positions of the loops that form the rows of the unfolded image."""
        return tuple(place for place in range(4) if place != self.channels)

    def fuse_indices(self, variables: Sequence[Any], places: Sequence[int]) -> Any:
        """Returns one index for several loops, the first one slowest; all variables are given."""
        index, stride = variables[places[-1]], 1
        for place, inner in zip(reversed(places[:-1]), reversed(places[1:]), strict=True):
            stride *= self.extents[inner]
            index = variables[place] * stride + index
        return index

    @property
    def window(self) -> int:
        """The number of pixels that one output reads. Input channels stand where output channels
        do: last or first."""
        height_and_width = self.extents[4:6] if self.channels == _LAST else self.extents[5:7]
        return math.prod(height_and_width)

    def order_by_image(self, rows: Any, columns: Any) -> tuple[Any, Any]:
        """Returns the rows and columns of a matrix in image order: columns are channels, last or
        first."""
        return (rows, columns) if self.channels == _LAST else (columns, rows)


def _im2col(schedule: Any) -> Any | None:
    """Returns the schedule as a matrix product, None if there is nothing to unfold."""
    convolution = _convolution(schedule)
    if convolution is None or not _is_worth_unfolding(schedule, convolution):
        return None
    # What the function writes keeps its layout, so something must follow the product.
    followers = _followers(schedule, convolution.block) or [
        schedule.cache_write(convolution.block, 0, "global")
    ]
    if any(_extents(schedule, block) != convolution.extents[:4] for block in followers):
        return None
    patches = schedule.reindex(convolution.block, ("read", 0))
    places = [place for place in range(7) if place != convolution.channels]
    if _extents(schedule, patches) != tuple(convolution.extents[place] for place in places):
        return None  # a grouped convolution: what it reads depends on the channel it writes
    for padding in schedule.get_producers(patches):
        schedule.compute_inline(padding)
    _flatten(schedule, convolution, patches, places)
    for block in followers:
        _flatten_output(schedule, convolution, block)
    return schedule.mod


def _convolution(schedule: Any) -> _Convolution | None:
    for block in schedule.get_child_blocks(schedule.get_sblock("root")):
        body = schedule.get(block)
        if [int(v.iter_type) for v in body.iter_vars] != _IMAGE or len(body.reads) != 2:  # noqa: PLR2004
            continue
        variables = [v.var for v in body.iter_vars]
        positions = _index_positions(body.reads[1], variables[:4])
        if positions in ([_FIRST], [_LAST]):
            index = str(variables[0].ty)
            return _Convolution(block, _extents(schedule, block), positions[0], index)
    return None


def _index_positions(region: Any, variables: Sequence[Any]) -> list[int]:
    """Returns the positions of the variables that are an index of the region."""
    indices = [each.min for each in region.region]
    return [
        place
        for place, variable in enumerate(variables)
        if any(variable.same_as(index) for index in indices)
    ]


def _extents(schedule: Any, block: Any) -> tuple[int, ...]:
    return tuple(int(v.dom.extent) for v in schedule.get(block).iter_vars)


def _is_worth_unfolding(schedule: Any, convolution: _Convolution) -> bool:
    """Returns whether unfolding can pay: a 1x1 window is a product already."""
    buffer = schedule.get(convolution.block).reads[0].source
    size = math.prod(convolution.extents) // convolution.extents[convolution.channels]
    itemsize = tvm.DataType(str(buffer.dtype)).itemsize
    return convolution.window > 1 and size * itemsize <= _MAX_BYTES


def _followers(schedule: Any, block: Any) -> list[Any]:
    """Returns the blocks that read the result, each once: SiLU reads it twice."""
    followers: dict[str, Any] = {}
    waiting = list(schedule.get_consumers(block))
    while waiting:
        follower = waiting.pop()
        name = schedule.get(follower).name_hint
        if name not in followers:
            followers[name] = follower
            waiting += schedule.get_consumers(follower)
    return list(followers.values())


def _flatten(schedule: Any, convolution: _Convolution, patches: Any, axes: Sequence[int]) -> None:
    def image(*variables: Any) -> tuple[Any, Any]:
        every = dict(zip(axes, variables, strict=True))
        whole = [every.get(place) for place in range(7)]
        rows, columns = (
            convolution.fuse_indices(whole, convolution.places),
            convolution.fuse_indices(whole, range(4, 7)),
        )
        return convolution.order_by_image(rows, columns)

    def product(*variables: Any) -> tuple[Any, ...]:
        rows, columns = (
            convolution.fuse_indices(variables, p) for p in (convolution.places, range(4, 7))
        )
        return (*convolution.order_by_image(rows, variables[convolution.channels]), columns)

    schedule.transform_layout(patches, ("write", 0), _map(convolution, image, 6))
    schedule.transform_block_layout(patches, _map(convolution, image, 6))
    schedule.transform_layout(convolution.block, ("write", 0), _output_map(convolution))
    schedule.transform_block_layout(convolution.block, _map(convolution, product, 7))


def _flatten_output(schedule: Any, convolution: _Convolution, block: Any) -> None:
    """Flattens the product's output, unless the block writes an argument of the function, whose
    layout stays."""
    if schedule.get_consumers(block):
        schedule.transform_layout(block, ("write", 0), _output_map(convolution))
    schedule.transform_block_layout(block, _output_map(convolution))


def _output_map(convolution: _Convolution) -> Any:
    def output(*variables: Any) -> tuple[Any, Any]:
        return convolution.order_by_image(
            convolution.fuse_indices(variables, convolution.places), variables[convolution.channels]
        )

    return _map(convolution, output, 4)


def _map(convolution: _Convolution, function: Any, dimensions: int) -> Any:
    return IndexMap.from_func(function, ndim=dimensions, index_dtype=convolution.loop_type)


# The variants of a function: the same computation by another algorithm, each with its own search
# space. Which is fastest depends on the extents, so the search measures all.

_logger = logging.getLogger(__name__)

_Form = TypeVar("_Form")
DIRECT, IM2COL, GROUP_VECTORS = "direct", "im2col", "group-vectors"
ASKED_FOR = "tunegate.algorithm"
"""The function attribute that names the only variant it may have."""


class AlgorithmVariant(NamedTuple):
    """One variant: `module` has one function, `main`, with the arguments of the original function.
    A variant that `is_seldom_best` gets fewer random samples. `lanes` are the numbers that one step
    of its innermost loop computes."""

    name: str
    module: Any
    is_seldom_best: bool = False
    lanes: int = 1


def variants_of(module: Any, kind: str) -> tuple[AlgorithmVariant, ...]:
    """Returns the variants, the direct one first, or only the requested one. `kind` is the
    target's: on a GPU the tensor cores' own space has products already."""
    every = _every_variant(module, kind)
    algorithm = asked_algorithm(module[_MAIN])
    alone = [each._replace(is_seldom_best=False) for each in every if each.name == algorithm]
    return tuple(alone) or every


def asked_algorithm(function: Any) -> str:
    """Returns the only variant that the function may have, '' if the search chooses."""
    return str((function.attrs or {}).get(ASKED_FOR, ""))


def _every_variant(module: Any, kind: str) -> tuple[AlgorithmVariant, ...]:
    direct = AlgorithmVariant(DIRECT, module)
    if kind != "llvm":
        return (direct,)
    vectors = _try_variant(group_vectors, module[_MAIN])
    if vectors is not None:
        return (
            direct._replace(is_seldom_best=vectors.is_shuffled),
            AlgorithmVariant(GROUP_VECTORS, vectors.module, lanes=vectors.lanes),
        )
    product = _try_variant(unfolded_image, module)
    if product is None:
        return (direct,)
    # With channels last the direct form is the best of nine in ten convolutions.
    return (direct, AlgorithmVariant(IM2COL, product, is_seldom_best=True))


def _try_variant(form: Callable[[Any], _Form | None], of: Any) -> _Form | None:
    try:
        return form(of)
    except Exception:
        _logger.info("a function has no other form", exc_info=True)
        return None


# Convolutions in the one variant that a target asks for: a mark makes search, records and default
# schedules know no other.


def with_algorithm(module: Any, algorithm: str) -> Any:
    """Returns the module with a mark on each function that has this variant among others. A
    function with one variant stays as it is. Winograd's form is only a default schedule, and a
    marked function does not have it."""
    if algorithm == AUTO:
        return module
    return with_unscheduled(module, partial(_mark, algorithm=algorithm))


def with_asked_forms(module: Any) -> Any:
    """Returns the module with the marked functions in their variant, where loops stay as written.
    Vectors of groups have a schedule of their own."""
    return with_unscheduled(module, _as_marked)


def _mark(function: Any, algorithm: str) -> Any | None:
    try:
        module = canonical_workload(function).module
        names = [each.name for each in variants_of(module, "llvm")]
        is_choice = len(names) > 1 or window_of_three(module[_MAIN]) is not None
    except Exception:
        _logger.info("a function has no other form", exc_info=True)
        return None
    is_asked = is_choice and algorithm in names
    return function.with_attr(ASKED_FOR, algorithm) if is_asked else None


def _as_marked(function: Any) -> Any | None:
    if asked_algorithm(function) != IM2COL:
        return None
    product = unfolded_image(canonical_workload(function).module)
    return None if product is None else with_symbol_of(product[_MAIN], function)
