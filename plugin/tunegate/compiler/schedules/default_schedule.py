"""The default schedule of a kernel that has no better one in a record."""

import logging
import math
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import tvm
from tvm.ir import Call, Op
from tvm.ir.expr import TensorLoad
from tvm.s_tir import Schedule, dlight
from tvm.s_tir.schedule import ScheduleError
from tvm.tirx import IndexMap, IntImm, IterVar, Select, Var
from tvm_ffi import structural_walk

from tunegate.compiler.schedules import grouped_convolutions, unscheduled
from tunegate.compiler.schedules.algorithm_variants import DIRECT, asked_algorithm, with_asked_forms
from tunegate.compiler.schedules.product_tiles import with_product_tiles
from tunegate.compiler.schedules.winograd import with_winograd
from tunegate.compiler.targets import threads_of, vector_registers
from tunegate.tune.prior import VectorRegisters

DEFAULTS_VERSION = 15
"""Goes up with every change of these schedules, and of how an operator is imported: a build with
others is another build."""

_MOST_ROWS, _THREADS_OF_A_ROW = 16, 32
"""Of a block of TVM's products with a vector, on a GPU."""
_FEW_TERMS, _THREADS_OF_FEW = 32, 128
"""A sum of so few terms, on a GPU, is one thread's, of a block of so many."""


def with_default_schedule(module: Any, target: Any) -> Any:
    """Returns the module with a schedule for each kernel that has none. On CPUs the outermost loops
    are shared among the threads; the others stay as written, but for concatenations, products, sums
    along the innermost axis and element-wise chains. On a GPU loops as written would not run: TVM's
    generic rules (DLight) bind them to its threads."""
    if str(target.kind.name) != "cuda":
        packing = with_packing_schedules(module, target)
        chains = with_inlined_chains(with_split_choices(packing))
        sums = with_vector_accumulators(chains, threads_of(target))
        return unscheduled.with_parallel_loops(sums, target)
    busy = unscheduled.with_unscheduled(module, unscheduled.idle)
    with target:
        return dlight.ApplyDefaultSchedule(
            dlight.gpu.Matmul(),
            _RowsWithoutRest(),
            dlight.gpu.Reduction(),
            _FewTerms(),
            dlight.gpu.GeneralReduction(),
            dlight.gpu.Fallback(),
        )(busy.clone())  # it changes the module that it is given


class _RowsWithoutRest(dlight.gpu.GEMV):  # type: ignore[misc]
    """TVM's rule for products with a vector, but a block takes a number of rows that divides all of
    them. TVM's blocks take 16, and the condition that leaves out rows that are not there gets lost
    where the sums of threads are written: up to 15 numbers behind the result, or in shared memory
    behind the variable that holds it."""

    def sch_inner_reduction(
        self, sch: Any, target: Any, block: Any, vector_input_buffers: Any, epilogue_info: Any
    ) -> Any:
        extents = [sch.get(loop).extent for loop in sch.get_loops(block)[:2]]  # batch, rows
        if all(isinstance(extent, IntImm) for extent in extents):
            rows = math.gcd(_MOST_ROWS, math.prod(int(extent) for extent in extents))
            # From what a block may have TVM takes the rows.
            threads = min(int(target.attrs["max_num_threads"]), rows * _THREADS_OF_A_ROW)
            target = tvm.target.Target({**target.export(), "max_num_threads": threads})
        return super().sch_inner_reduction(sch, target, block, vector_input_buffers, epilogue_info)


class _FewTerms(dlight.ScheduleRule):  # type: ignore[misc]
    """A thread for each sum of few terms, as a depthwise convolution has them, and for the element
    that is made of it. TVM's rule gives each a block of 256 threads, most of which wait."""

    def apply(self, func: Any, target: Any, _: bool) -> Any:
        with suppress(ScheduleError):
            schedule = Schedule(func)
            blocks = dlight.normalize_prim_func(schedule)
            blocks = dlight.try_inline(schedule, blocks) if blocks else []
            terms = _terms_of_one_sum(blocks) if blocks else 0
            if terms and len(schedule.get(blocks[0].block_rv).writes) == 1:  # no argmax
                _give_each_a_thread(schedule, blocks, terms)
                return schedule
        return None


def _terms_of_one_sum(blocks: Sequence[Any]) -> int:
    """Returns over how many axes the first block sums, 0 where its terms are many or unknown, or
    where what follows is more than one block with an element for each sum."""
    sums, *rest = blocks
    terms = [each.dom for each in sums.iters if each.kind == "R"]
    places = [each.dom for each in sums.iters if each.kind == "S"]
    is_known = all(isinstance(extent, int) for extent in (*terms, *places))
    if not terms or not places or not is_known or math.prod(terms) > _FEW_TERMS:
        return 0
    is_alone = all(
        each.is_injective() and [one.dom for one in each.iters] == places for each in rest
    )
    is_in_order = sums.dom_kind() == "S" * len(places) + "R" * len(terms)
    return len(terms) if is_alone and is_in_order and len(rest) < 2 else 0  # noqa: PLR2004


def _give_each_a_thread(schedule: Any, blocks: Sequence[Any], terms: int) -> None:
    """Elements have one axis, as the sums that the last block reads: TVM cannot place a block by
    an index that is split among threads and axes at other numbers."""
    sums, last = blocks[0].block_rv, blocks[-1].block_rv
    index = str(blocks[0].iters[0].var.ty.dtype)
    if len(blocks) > 1:
        shape = [int(extent) for extent in schedule.get(sums).writes[0].source.shape]
        schedule.transform_layout(sums, ("write", 0), _as_one_axis(shape, index))
    for block in blocks:
        places = [each.dom for each in block.iters if each.kind == "S"]
        one_axis = _as_one_axis(places, index, len(block.iters) - len(places))
        schedule.transform_block_layout(block.block_rv, one_axis)
    group, thread = schedule.split(schedule.get_loops(last)[0], [None, _THREADS_OF_FEW])
    schedule.bind(group, "blockIdx.x")
    schedule.bind(thread, "threadIdx.x")
    if len(blocks) > 1:
        schedule.compute_at(sums, thread, preserve_unit_loops=True)
        schedule.set_scope(sums, 0, "local")
    schedule.decompose_reduction(sums, schedule.get_loops(sums)[-terms])


def _as_one_axis(extents: Sequence[int], index: str, others: int = 0) -> Any:
    """Returns the map of axes to one, in their order, and of the others behind them to themselves.
    All have the type `index`."""

    def axes_after(*axes: Any) -> list[Any]:
        place = axes[0]
        for axis, extent in zip(axes[1:], extents[1:], strict=False):
            place = place * extent + axis
        return [place, *axes[len(extents) :]]

    return IndexMap.from_func(axes_after, ndim=len(extents) + others, index_dtype=index)


def with_packing_schedules(module: Any, target: Any, leaves: Collection[str] = ()) -> Any:
    """Returns the module with the default schedules that pack constants: a build needs them before
    it folds constants. Functions named in `leaves` stay as they are."""
    if str(target.kind.name) == "cuda":
        return module
    with_vectors = with_group_vectors(with_asked_forms(module), target)
    return with_product_tiles(with_winograd(with_vectors, target, leaves), target, leaves)


# Chains of element-wise operators as one loop. As written, each operator goes over all numbers and
# writes them to memory for the next.


def with_inlined_chains(module: Any) -> Any:
    """Returns the module, or a changed copy if it has such functions; scheduled functions stay as
    they are."""
    return unscheduled.with_unscheduled(
        module, partial(unscheduled.with_changed_blocks, change=_inline)
    )


def _inline(schedule: Any, block: Any) -> bool:
    """Inlines a block into its only reader, which reads each number once: nothing is computed
    twice."""
    consumers = schedule.get_consumers(block)
    if len(consumers) != 1:
        return False
    body, consumer = schedule.get(block), schedule.get(consumers[0])
    size = _numbers(body)
    if size is None or size != _numbers(consumer) or _reads(consumer, body) != 1:
        return False
    with suppress(ScheduleError):
        schedule.compute_inline(block)
        return True
    return False


def _numbers(body: Any) -> int | None:
    """Returns how many numbers a block computes independently, None for sums and unknown sizes."""
    extents = [variable.dom.extent for variable in body.iter_vars]
    kinds = {int(variable.iter_type) for variable in body.iter_vars}
    if kinds != {IterVar.DataPar} or not all(isinstance(extent, IntImm) for extent in extents):
        return None
    return math.prod(int(extent) for extent in extents)


def _reads(consumer: Any, producer: Any) -> int:
    (region,) = producer.writes
    loads: list[Any] = []
    structural_walk(consumer.body, [(TensorLoad, loads.append)])
    return sum(load.source.same_as(region.source) for load in loads)


# Splits loops that choose an input for each number, as a concatenation along the innermost axis
# does. LLVM cannot vectorize them. Split where the inputs meet, the inner loop has no choice left;
# `light_squeezenet`'s concatenations become six times faster (docs/benchmarks).

_MAIN = "main"
_IF_THEN_ELSE = Op.get("prim.if_then_else")
_FEWEST = 4
"""A shorter loop is not worth its own overhead."""


def with_split_choices(module: Any) -> Any:
    """Returns the module, or a changed copy if it has such loops; scheduled functions stay as they
    are."""
    return unscheduled.with_unscheduled(module, _split_at_inputs)


def _split_at_inputs(function: Any) -> Any | None:
    """Returns the function split where its inputs meet, None if there is nothing to split."""
    if not _conditions(function.body):
        return None
    schedule = Schedule(tvm.IRModule({_MAIN: function}))
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    runs = [(block, run) for block in blocks if (run := _common_run(schedule.get(block)))]
    for block, run in runs:
        schedule.split(schedule.get_loops(block)[-1], [None, run])
    return schedule.mod[_MAIN] if runs else None


def _common_run(block: Any) -> int | None:
    """Returns how many neighbours along its innermost axis share the choice of a block, None if
    there is nothing to split."""
    innermost = block.iter_vars[-1] if block.iter_vars else None
    if innermost is None or int(innermost.iter_type) != IterVar.DataPar:
        return None
    extent = innermost.dom.extent
    edges = [
        edge for condition in _conditions(block.body) for edge in _edges(condition, innermost.var)
    ]
    if not edges or not isinstance(extent, IntImm):
        return None
    run = math.gcd(int(extent), *edges)
    return run if _FEWEST <= run < int(extent) else None


def _conditions(body: Any) -> list[Any]:
    calls = [call for call in _nodes_of_kind(body, Call) if call.op.same_as(_IF_THEN_ELSE)]
    selects = _nodes_of_kind(body, Select)
    return [call.args[0] for call in calls] + [select.condition for select in selects]


def _edges(condition: Any, axis: Any) -> list[int]:
    """Returns the numbers that the axis is compared with, none if the condition has other axes, or
    depends on data."""
    if _nodes_of_kind(condition, TensorLoad) or not any(
        variable.same_as(axis) for variable in _nodes_of_kind(condition, Var)
    ):
        return []
    return [int(number.value) for number in _nodes_of_kind(condition, IntImm)]


def _nodes_of_kind(root: Any, kind: type) -> list[Any]:
    nodes: list[Any] = []
    structural_walk(root, [(kind, nodes.append)])
    return nodes


# Computes several neighbouring sums (or other reductions) at a time. As written, each addition
# waits for the one before, and every partial sum goes to memory; LLVM may not change that order.
# Here some neighbours along the innermost axis are summed together in registers. Each adds the same
# numbers in the same order as before, so results keep every bit.

_LANES = (64, 48, 32, 24, 16, 8, 4)
"""The numbers of neighbours to sum together, the preferred one first."""
_MIN_BITS, _MAX_LANES = 32, 64
_MIN_LANES = 4
_MIN_REDUCED = 16
"""Shorter sums are not worth it."""


def with_vector_accumulators(module: Any, threads: int = 1) -> Any:
    """Returns the module, or a changed copy if it has such functions; scheduled functions stay as
    they are."""
    accumulate = partial(_accumulate, threads=threads)
    return unscheduled.with_unscheduled(
        module, partial(unscheduled.with_changed_blocks, change=accumulate)
    )


def _accumulate(schedule: Any, block: Any, threads: int) -> bool:
    """Schedules the block if it is a reduction with neighbours, and returns whether it was."""
    body, loops = schedule.get(block), schedule.get_loops(block)
    kinds = [int(variable.iter_type) for variable in body.iter_vars]
    if len(loops) != len(kinds) or set(kinds) != {IterVar.DataPar, IterVar.CommReduce}:
        return False
    spatial = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == IterVar.DataPar]
    sum_loops = [loop for loop, kind in zip(loops, kinds, strict=True) if kind != IterVar.DataPar]
    lanes = _lanes(schedule.get(spatial[-1]).extent)
    extents = [schedule.get(loop).extent for loop in sum_loops]
    if lanes is None or not _is_worth_it(body, extents):
        return False
    outer, inner = schedule.split(spatial[-1], [None, lanes])
    copy = schedule.cache_write(block, 0, "global")
    schedule.reorder(*spatial[:-1], outer, *sum_loops, inner)
    schedule.reverse_compute_at(copy, outer)
    schedule.vectorize(inner)
    schedule.vectorize(schedule.get_loops(copy)[-1])
    unscheduled.share_out(schedule, block, threads)
    schedule.decompose_reduction(block, sum_loops[0])
    return True


def _is_worth_it(body: Any, extents: Sequence[Any]) -> bool:
    """Returns whether the change pays. LLVM unrolls a window of few numbers by itself. Sums over
    contiguous rows would have to gather their numbers; in a product the other factor pays for
    that."""
    if not all(isinstance(extent, IntImm) for extent in extents):
        return False
    if math.prod(int(extent) for extent in extents) < _MIN_REDUCED or len(body.writes) != 1:
        return False
    if int(tvm.DataType(str(body.writes[0].source.dtype)).bits) < _MIN_BITS:
        return False
    last = [v.var for v in body.iter_vars if int(v.iter_type) == IterVar.DataPar][-1]
    side_by_side = any(read.region and last.same_as(read.region[-1].min) for read in body.reads)
    return side_by_side or len(body.reads) > 1


def _lanes(extent: Any) -> int | None:
    """Returns how many neighbours to sum together, None if there are too few."""
    if not isinstance(extent, IntImm):
        return None
    usual = next((lanes for lanes in _LANES if int(extent) % lanes == 0), 0)
    odd = max(lanes for lanes in range(1, _MAX_LANES) if math.gcd(lanes, int(extent)) == lanes)
    lanes = usual if 4 * usual > odd else odd
    return lanes if lanes >= _MIN_LANES else None


# Grouped convolutions on CPUs. The sums of a few neighbours along a row stay in registers, one
# vector of channels each, while the window passes, and what follows the convolution is computed
# before they are written. Every sum adds the same numbers in the same order as the function as
# written.

_logger = logging.getLogger(__name__)

_MAX_SUMS, _MAX_SPANNING_SUMS = 14, 8
"""The number of 32 registers of 512 bits that hold sums; fewer for vectors that span groups, as
their shuffled inputs need registers too. Smaller register files use three quarters and a half."""
_MAX_ROWS = 16
_MAX_STEPS = 256
"""Steps of a window row that are unrolled."""


def with_group_vectors(module: Any, target: Any) -> Any:
    """Returns the module, or a changed copy if it has such functions; scheduled functions stay as
    they are."""
    return unscheduled.with_unscheduled(module, partial(_schedule_groups, target=target))


def _schedule_groups(function: Any, target: Any) -> Any | None:
    if asked_algorithm(function) == DIRECT:
        return None
    try:
        vectors = grouped_convolutions.group_vectors(function)
        if vectors is None:
            return None
        most_sums = _most_sums(vector_registers(target), vectors)
        new_function = _schedule_vectors(vectors, most_sums, threads_of(target))
        new_function = unscheduled.with_symbol_of(new_function, function)
        return new_function.with_attr(unscheduled.IS_SCHEDULED, True)
    except Exception:
        _logger.info("a grouped convolution stays as it is", exc_info=True)
        return None


def _most_sums(
    vector_registers: VectorRegisters, vectors: grouped_convolutions.GroupVectors
) -> int:
    """Returns how many vectors of sums stay in registers: with too few, every step waits for
    memory."""
    room = vector_registers.count * vector_registers.lanes // grouped_convolutions.REGISTER
    most = min(_MAX_SPANNING_SUMS, room // 2) if vectors.groups else min(_MAX_SUMS, 3 * room // 4)
    registers = len(grouped_convolutions.ChannelVectors(vectors.lanes, vectors.groups).pieces)
    return max(1, most // registers)


class _Tile(NamedTuple):
    """A tile of sums: `columns` neighbours along a row by `vectors`. After `rows` rows the next
    vectors follow."""

    columns: int
    vectors: int
    rows: int


def _schedule_vectors(
    vectors: grouped_convolutions.GroupVectors, most_sums: int, threads: int
) -> Any:
    schedule = Schedule(vectors.module)
    block = grouped_convolutions.vector_block(schedule)
    tile = _tile(schedule, block, vectors, most_sums)
    _, rows, columns, channels, *window = schedule.get_loops(block)
    outer_rows, inner_rows = schedule.split(rows, [None, tile.rows])
    outer_columns, inner_columns = schedule.split(columns, [None, tile.columns])
    outer_channels, inner_channels = schedule.split(channels, [None, tile.vectors])
    images = schedule.get_producers(block)
    copy = schedule.cache_write(block, 0, "global")
    inner = (inner_columns, inner_channels)
    schedule.reorder(outer_rows, outer_channels, inner_rows, outer_columns, *window, *inner)
    schedule.reverse_compute_at(copy, outer_columns)
    unscheduled.inline_followers(schedule, copy)
    _vectorize(schedule, copy)
    _copy_padded(schedule, images, outer_channels if vectors.groups else None)
    _unroll(schedule, block, tile, vectors)
    unscheduled.share_out(schedule, block, threads, lanes=vectors.lanes)
    schedule.decompose_reduction(block, window[0])
    return schedule.mod[_MAIN]


def _tile(
    schedule: Any, block: Any, vectors: grouped_convolutions.GroupVectors, most: int
) -> _Tile:
    _, rows, columns, channels, *_ = (int(v.dom.extent) for v in schedule.get(block).iter_vars)
    along = _divisor(columns, most)
    several = 1 if vectors.groups else _divisor(channels, most // along)
    return _Tile(along, several, _divisor(rows, _MAX_ROWS))


def _divisor(number: int, most: int) -> int:
    return max(grouped_convolutions.divisors(number, most))


def _vectorize(schedule: Any, block: Any) -> None:
    *_, columns, _ = schedule.get_loops(block)
    for loop in (columns, _vectorize_innermost(schedule, block)):
        schedule.unroll(loop)


def _vectorize_innermost(schedule: Any, block: Any) -> Any:
    """Vectorizes the innermost loop, and returns the loop over its vectors."""
    channels = schedule.get_loops(block)[-1]
    lanes = math.gcd(int(schedule.get(channels).extent), grouped_convolutions.REGISTER)
    steps, inner = schedule.split(channels, [None, lanes])
    schedule.vectorize(inner)
    return steps


def _copy_padded(schedule: Any, images: list[Any], at: Any | None) -> None:
    """Makes the padded image a copy: of one vector's channels if it has groups of its own."""
    for image in images:
        if "layout_rewrite_preproc" in str(schedule.get(image).annotations):
            continue
        if at is not None:
            schedule.compute_at(image, at)
        _vectorize_innermost(schedule, image)


def _unroll(
    schedule: Any, block: Any, tile: _Tile, vectors: grouped_convolutions.GroupVectors
) -> None:
    *_, row_of_window, columns, channels = schedule.get_loops(block)
    for loop in (columns, channels):
        schedule.unroll(loop)
    steps = tile.columns * int(schedule.get(row_of_window).extent)
    if vectors.groups and steps * _channels_in(schedule, block) <= _MAX_STEPS:
        schedule.unroll(row_of_window)


def _channels_in(schedule: Any, block: Any) -> int:
    weights = schedule.get(block).reads[1]
    return int(weights.region[-2].extent)
