"""Replaces the products of a scheduled model by kernels in lower precision where tiles are
faster."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm.target import codegen

from tunegate.artifacts.candidates import FLOAT32, PRECISION
from tunegate.compiler.low_precision import tensor_cores, tile_numbers
from tunegate.compiler.low_precision.product import (
    COLUMNS,
    ROWS,
    ProductShape,
    RowsOfTiles,
    product_of,
)
from tunegate.compiler.low_precision.tensor_core_kernel import Plan, tensor_core_kernel
from tunegate.compiler.low_precision.tile_kernel import tile_kernel
from tunegate.compiler.schedules.schedule_choice import ScheduleChoice
from tunegate.compiler.targets import ResolvedTarget, threads_of
from tunegate.config import TargetConfig
from tunegate.errors import NotOfferedError, UnsupportedModelError
from tunegate.system.machine.cores import lacks_some
from tunegate.tune.compiler_protocol import BuiltFunction
from tunegate.tune.gpu_analysis import Card, card_of

TILES_VERSION = 4
"""Goes up with every change of these kernels: a build with other kernels is another build."""


class TileKernel(NamedTuple):
    """`weights` is the number of the parameter whose constant `pack` replaces by numbers of type
    `word`; None without one."""

    function: Any
    weights: int | None = None
    pack: Callable[[np.ndarray], np.ndarray] | None = None
    word: str = ""


class TileKernels(NamedTuple):
    """The kernels in lower precision, by the names of those they replace. They are compiled for
    `tiles`, all others for `target`; `multiply` is the instruction."""

    kernels: Mapping[str, TileKernel]
    target: Any
    tiles: Any = None
    multiply: str = ""


def require_tiles(
    precision: str, target: TargetConfig, lacks: Callable[..., str] = lacks_some
) -> None:
    """Raises NotOfferedError if the machine or a target of kind llvm cannot multiply such
    numbers."""
    if precision != FLOAT32 and target.kind == "llvm":
        _numbers_for(precision, "" if target.cpu == "native" else target.cpu, lacks)


def _numbers_for(
    precision: str, cpu: str, lacks: Callable[..., str] = lacks_some
) -> tile_numbers.TileNumbers:
    """Returns the fastest numbers that this machine and the named `cpu` can multiply."""
    problem = ""
    for numbers in tile_numbers.NUMBERS[precision]:
        problem = lacks(numbers.flags) or _unknown_to(cpu, numbers)
        if not problem:
            return numbers
    raise NotOfferedError(problem)


def _unknown_to(cpu: str, numbers: tile_numbers.TileNumbers) -> str:
    if not cpu:
        return ""
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu})
    missing = sorted(f for f in numbers.features if not codegen.target_has_features(f, target))
    return f"the target's cpu {cpu} has no {', '.join(missing)}" if missing else ""


def tile_kernels(
    module: Any, choices: Sequence[ScheduleChoice], target: ResolvedTarget, precision: str
) -> TileKernels:
    """Returns the kernels that are faster in `precision`, none for float32. Raises NotOfferedError
    if none is faster."""
    if precision == FLOAT32:
        return TileKernels({}, target.target)
    calls = _calls(module["main"])
    if target.attributes["kind"] == "cuda":
        arch, factors = str(target.attributes["arch"]), tensor_cores.FACTORS[precision]
        if int("".join(filter(str.isdigit, arch))) < factors.least_capability:
            message = f"{arch} has no tensor cores for {precision}"
            raise NotOfferedError(message)
        tiles, multiply = target.target, factors.multiply
        lower: Callable[..., TileKernel | None] = partial(
            _on_tensor_cores, card=card_of(arch), precision=precision
        )
    else:
        lower, tiles, multiply = _by_tiles(target, precision)
    kernels = {
        choice.function.name: kernel
        for choice in choices
        if (kernel := lower(choice, calls.get(choice.function.name, ()))) is not None
    }
    if not kernels:
        message = "no product of the model is faster in it"
        raise NotOfferedError(message)
    return TileKernels(kernels, target.target, tiles, multiply)


def _by_tiles(
    target: ResolvedTarget, precision: str
) -> tuple[Callable[..., TileKernel | None], Any, str]:
    """Returns what lowers a kernel for a CPU, the target of such kernels, and the instruction."""
    cpu = str(target.attributes["mcpu"])
    is_native = cpu == str(codegen.llvm_get_system_cpu())
    numbers = _numbers_for(precision, "" if is_native else cpu)
    lower = partial(_lower, threads=threads_of(target.target), numbers=numbers)
    # LLVM names a processor by its family, and knows fewer instructions than it has.
    features = [f"+{feature}" for feature in sorted(numbers.features)]
    tiles = tvm.target.Target({**target.attributes, "mattr": features})
    return lower, tiles, numbers.multiply


def with_tiles(module: Any, kernels: Mapping[str, TileKernel]) -> Any:
    """Returns a Relax module of kernels with these replaced and their weights packed."""
    if not kernels:
        return module
    others = {v: f for v, f in module.functions.items() if v.name_hint not in kernels}
    packing = _Packing(tvm.IRModule(others, attrs=module.attrs), kernels)
    for variable, function in others.items():
        if isinstance(function, relax.Function):
            packing.builder_.update_func(variable, packing.visit_expr(function))
    return packing.builder_.get()


def key_parts(
    precision: str, functions: Iterable[BuiltFunction], multiply: str = ""
) -> Mapping[str, Any]:
    """Returns the parts that lower precision adds to a build's key."""
    if precision == FLOAT32:
        return {}
    tiles = sorted(each.key.workload for each in functions if each.source == "tiles")
    version = f"{TILES_VERSION} {multiply}"
    return {PRECISION: precision, "tiles": tiles, "tiles-version": version}


def _lower(
    choice: ScheduleChoice,
    calls: Collection[Sequence[Any]],
    threads: int,
    numbers: tile_numbers.TileNumbers,
) -> TileKernel | None:
    """Returns the kernel if it is faster and all calls have finite weights or multiply
    activations."""
    function = choice.function.workload.module["main"]
    try:
        product = product_of(function)
        if product is None:
            return None
        packs = product.right is not None
        if not packs and not _are_finite(calls, product.weights):
            return None
        own = _for_activations(numbers) if packs else numbers
        if own is None or not is_faster(
            product.shape, threads, _known_ms(choice), own, packs=packs
        ):
            return None
        kernel = tile_kernel(product, function, threads, own)
        rows = RowsOfTiles(product.shape, own.depth)
        pack = partial(tile_numbers.pack_weights, rows=rows, numbers=own)
        return TileKernel(kernel, None if packs else product.weights, pack, own.word)
    except UnsupportedModelError:
        return None


def _on_tensor_cores(
    choice: ScheduleChoice, calls: Collection[Sequence[Any]], card: Card, precision: str
) -> TileKernel | None:
    """Returns the kernel if it is faster; weights that the precision cannot hold stay in
    float32."""
    function = choice.function.workload.module["main"]
    product = tensor_cores.matrix_product(function)
    if product is None:
        return None
    tiles = tensor_cores.best_tiles(product, card, precision)
    if not tensor_cores.is_faster(product, tiles, card, _known_ms(choice)):
        return None
    packing = place = None
    for operand in (product.rows, product.columns):
        if operand.parameter is None or not _is_constant(calls, operand.parameter):
            continue
        if not _are_finite(calls, operand.parameter, tiles.factors.most):
            return None
        if packing is None:
            packing = tensor_cores.packed_weights(product, operand, tiles)
            place = operand.parameter if packing else None
    plan = Plan(product, tiles, packing, place)
    try:
        kernel = tensor_core_kernel(function, plan)
    except UnsupportedModelError:
        return None
    return TileKernel(kernel, place, packing.pack if packing else None, tiles.factors.kind)


def _for_activations(numbers: tile_numbers.TileNumbers) -> tile_numbers.TileNumbers | None:
    """Returns the precision for products of two activations, None if the kernels may not use its
    instruction."""
    bfloat16 = tile_numbers.BFLOAT16 if numbers.is_tiled else tile_numbers.BFLOAT16_VECTORS
    return bfloat16 if bfloat16.features <= numbers.features else None


def _known_ms(choice: ScheduleChoice) -> float | None:
    """Returns the measured float32 time of the kernel in ms, None without one."""
    record = choice.record
    is_own = record is not None and record.key.workload == choice.function.workload.digest
    return record.median_ms if record is not None and is_own else None


def _are_finite(
    calls: Collection[Sequence[Any]],
    place: int,
    most: float = float(np.finfo(np.float32).max),
) -> bool:
    """Returns whether this argument of all calls is a constant of numbers up to `most`."""
    return _is_constant(calls, place) and all(
        bool((np.abs(call[place].value.numpy()) <= most).all()) for call in calls
    )


def _is_constant(calls: Collection[Sequence[Any]], place: int) -> bool:
    return bool(calls) and all(isinstance(call[place], tvm.ir.GenericConst) for call in calls)


def _calls(main: Any) -> dict[str, list[Sequence[Any]]]:
    """Returns the arguments of all calls, by kernel name."""
    calls: dict[str, list[Sequence[Any]]] = {}
    for block in main.body.blocks:
        for binding in block.bindings:
            call = binding.value
            if isinstance(call, relax.Call) and getattr(call.op, "name", "") == "relax.call_tir":
                arguments = call.args[1]
                fields = arguments.fields if isinstance(arguments, relax.Tuple) else [arguments]
                calls.setdefault(call.args[0].name_hint, []).append(list(fields))
    return calls


@mutator
class _Packing(PyExprMutator):  # type: ignore[misc]
    """Gives each kernel its weights in the layout of its tiles."""

    def __init__(self, module: Any, kernels: Mapping[str, TileKernel]) -> None:
        super().__init__(module)
        self._kernels = kernels
        self._variables = {
            name: self.builder_.add_func(each.function, name) for name, each in kernels.items()
        }

    def visit_call_(self, call: Any) -> Any:
        if getattr(call.op, "name", "") != "relax.call_tir":
            return super().visit_call_(call)
        callee, arguments = call.args[0], call.args[1]
        if callee.name_hint not in self._kernels:
            return super().visit_call_(call)
        kernel = self._kernels[callee.name_hint]
        values = [self.visit_expr(field) for field in arguments.fields]
        if kernel.weights is not None and kernel.pack is not None:
            weights = values[kernel.weights].value.numpy()
            values[kernel.weights] = relax.const(kernel.pack(weights), kernel.word)
        return relax.call_tir(
            self._variables[callee.name_hint], relax.Tuple(values), call.ty_args[0]
        )


# Estimates the time of a product by tiles or vectors, and whether float32 is faster. Base and head
# share the estimate: a measurement would let two equally fast kernels flip between them. The
# constants are fits to kernels on a Sapphire Rapids, that of `vdpbf16ps` to kernels on a Zen 4
# (docs/benchmarks).

_BEGIN_NS: Final = 300.0
_LINE_NS: Final = 6.0
"""The cost of each piece of an image that is rounded, besides its numbers."""
_NUMBER_NS: Final = 0.05
_PACKED_NS: Final = 0.15
_STEP_NS: Final = 30.0
"""The cost of two by two tiles at a depth of one: loads and products."""
_DOT_NS: Final = 0.25
"""The cost of `vpdpbusd`: four products for each of 16 sums, and their loads."""
_PAIR_DOT_NS: Final = 0.33
"""The cost of `vdpbf16ps`: two products for each of 16 sums."""
_RESULT_NS: Final = 3.5
"""The cost of 16 results that are read, passed through the stages and written."""
_UNTUNED_GFLOPS: Final = 40.0
"""The float32 rate to assume without a measurement: tiles must be faster than that."""
_CLEARLY: Final = 0.9


def is_faster(
    shape: ProductShape,
    threads: int,
    float32_ms: float | None,
    numbers: tile_numbers.TileNumbers = tile_numbers.BFLOAT16,
    *,
    packs: bool = False,
) -> bool:
    """Returns whether tiles are clearly faster than float32, which took `float32_ms` (None: not
    measured)."""
    known_ns = shape.flops / _UNTUNED_GFLOPS / threads if float32_ms is None else float32_ms * 1e6
    return tiles_ns(shape, threads, numbers, packs=packs) < _CLEARLY * known_ns


def tiles_ns(
    shape: ProductShape,
    threads: int,
    numbers: tile_numbers.TileNumbers = tile_numbers.BFLOAT16,
    *,
    packs: bool = False,
) -> float:
    """Returns the estimated nanoseconds; `packs` if the right operand is an activation, too."""
    rows = RowsOfTiles(shape, numbers.depth)
    lines = shape.images * len(rows.phases) * rows.phase_height
    pieces = lines if rows.pixel == shape.channels else lines * shape.source.width
    rounding = pieces * _LINE_NS + shape.images * rows.image * _NUMBER_NS
    tiles = -(-shape.out_channels // COLUMNS)
    multiplying = shape.images * tiles * len(rows.taps) * _tap_ns(rows, numbers)
    results = shape.images * rows.row_count * tiles * _RESULT_NS
    image = shape.images * shape.source.height * shape.source.width * shape.channels
    measuring = image * _NUMBER_NS if numbers.is_whole else 0.0
    packing = tiles * COLUMNS * rows.tap_depth * shape.images * _PACKED_NS if packs else 0.0
    return _BEGIN_NS + (packing + measuring + rounding + multiplying + results) / threads


def _tap_ns(rows: RowsOfTiles, numbers: tile_numbers.TileNumbers) -> float:
    """Returns the nanoseconds of one tap of all rows, for one tile of columns."""
    if not numbers.is_tiled:
        words = rows.tap_depth * numbers.each_bytes // 4
        return rows.row_count * words * (_DOT_NS if numbers.is_whole else _PAIR_DOT_NS)
    high = 1 if rows.row_count <= ROWS else 2
    blocks = -(-rows.row_count // (ROWS * high))
    return blocks * high * (rows.tap_depth // rows.depth) * _STEP_NS / 4
