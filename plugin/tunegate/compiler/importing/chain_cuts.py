"""Chains of element-wise operators, cut where one expression of them would grow too large.

A schedule inlines the operators of a kernel into each other. An operator that reads its input
twice, as SiLU does, then doubles the expression, and LLVM's code generator expands a formula of
`schedules/vector_functions.py` to 19 to 66 copies of its argument, even where a variable binds it.
So six sigmoids in a row never finished compiling. Here the operator that would exceed a bound
becomes a kernel of its own; what is before and after it still fuses.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tvm import relax
from tvm.ir import Call, Op
from tvm.ir.expr import TensorLoad
from tvm.tirx import BufferStore, Select
from tvm_ffi import structural_walk

from tunegate.compiler.schedules.vector_functions import SELECT, copies_of_argument, parts_of

MOST_READS = 1_000
"""The most memory reads in one expression as written: ten doublings. A kernel with sixteen takes 22
seconds."""
MOST_COPIES = 100_000
"""The most memory reads with all formulas expanded. Three sigmoids have 20 thousand and Mish 34: a
tenth of a second. Four sigmoids have 531 thousand and take a second; each further one takes 27
times as long."""

PATTERN = "op_pattern"
INJECTIVE, OPAQUE = 2, 8
"""TVM's operator kinds: kinds up to the first are inlined, the second fuses with nothing."""
_CALL_TIR = Op.get("relax.call_tir")


def with_cut_chains(module: Any) -> Any:
    """Returns the legalized module, or a copy in which some operators fuse with nothing."""
    cut = {binding.value: binding.value.args[0] for binding in _past_the_bounds(module)}
    if not cut:
        return module
    cutting = _Cutting(module, cut)
    main = module.get_global_var("main")
    cutting.builder_.update_func(main, cutting.visit_expr(module[main]))
    return relax.transform.DeadCodeElimination()(cutting.builder_.get())


@relax.expr_functor.mutator
class _Cutting(relax.PyExprMutator):  # type: ignore[misc]
    def __init__(self, module: Any, cut: Mapping[Any, Any]) -> None:
        super().__init__(module)
        self._cut = cut
        self._alone = {
            kernel: self.builder_.add_func(
                module[kernel].with_attr(PATTERN, OPAQUE), f"{kernel.name_hint}_alone"
            )
            for kernel in {each.name_hint: each for each in cut.values()}.values()
        }

    def visit_call_(self, call: Any) -> Any:
        new_call = self.visit_expr_post_order(call)
        if call not in self._cut:
            return new_call
        return relax.call_tir(self._alone[self._cut[call]], new_call.args[1], call.ty_args[0])


class _Size(NamedTuple):
    """The reads in an expression: as written, and with its formulas expanded."""

    reads: int = 1
    copies: int = 1


def _past_the_bounds(module: Any) -> Iterator[Any]:
    """Yields the element-wise kernel calls that would exceed a bound once the kernels before them
    that do not are inlined."""
    kernels: dict[Any, Sequence[_Size]] = {}
    sizes: dict[Any, _Size] = {}
    for binding in (binding for block in module["main"].body.blocks for binding in block.bindings):
        call = binding.value
        if not isinstance(call, Call) or not call.op.same_as(_CALL_TIR):
            continue
        variable, argument = call.args[0], call.args[1]
        kernel = module[variable]
        if int((kernel.attrs or {}).get(PATTERN, OPAQUE)) > INJECTIVE:
            continue
        if variable not in kernels:
            kernels[variable] = sizes_of_parameters(kernel)
        values = argument.fields if isinstance(argument, relax.Tuple) else [argument]
        before = [sizes.get(value, _Size()) for value in values]
        pairs = list(zip(kernels[variable], before, strict=False))  # and its outputs
        size = _Size(
            sum(own.reads * other.reads for own, other in pairs),
            sum(own.copies * other.copies for own, other in pairs),
        )
        if size.reads > MOST_READS or size.copies > MOST_COPIES:
            yield binding
        else:
            sizes[binding.var] = size


def sizes_of_parameters(kernel: Any) -> Sequence[_Size]:
    """Returns how often the output of a kernel reads each parameter with all its blocks inlined."""
    stores: list[Any] = []
    structural_walk(kernel.body, [(BufferStore, stores.append)])
    reads = _reads(stores, kernel.params, lambda _: 1)
    copies = _reads(stores, kernel.params, copies_of_argument)
    return [_Size(reads[param], copies[param]) for param in kernel.params]


def _reads(
    stores: Sequence[Any], parameters: Sequence[Any], weight: Callable[[str], int]
) -> Counter[Any]:
    reads_by_buffer: dict[Any, Counter[Any]] = {}
    for store in stores:
        reads_by_buffer[store.buffer] = _reads_of(store.value, reads_by_buffer, weight)
    total: Counter[Any] = Counter()
    for parameter in parameters:
        total.update(reads_by_buffer.get(parameter, {}))
    return total


def _reads_of(
    expression: Any, writes: Mapping[Any, Counter[Any]], weight: Callable[[str], int]
) -> Counter[Any]:
    """Counts the reads of each buffer; a read inside a call or a choice counts with its weight. A
    buffer in `writes` stands for the reads that made it."""
    if isinstance(expression, TensorLoad):
        return writes.get(expression.source, Counter({expression.source: 1}))
    total: Counter[Any] = Counter()
    for part in parts_of(expression):
        total.update(_reads_of(part, writes, weight))
    if isinstance(expression, Select):
        times = weight(SELECT)
    else:
        times = weight(expression.op.name) if isinstance(expression, Call) else 1
    return Counter({buffer: times * count for buffer, count in total.items()})
