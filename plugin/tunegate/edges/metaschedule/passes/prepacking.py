"""Weights in the order in which a schedule reads them: packed once, when a model is built.

The functions of a model say which of their buffers are constants (`layout_free_buffers`); the
compiler's postprocessor then lays those out along the loops of each schedule. Here the packing is
taken out of the scheduled function again: a build folds it into the constants, and a candidate is
timed without it.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import tvm
from tvm import relax
from tvm.s_tir import SBlock, SBlockRealize
from tvm.s_tir import meta_schedule as ms

from tunegate.edges.metaschedule.passes.packing import Move, moves_of
from tunegate.edges.metaschedule.passes.weight_layout import with_packed_constants
from tunegate.edges.metaschedule.workload import Workload, canonical_workload

ATTRIBUTE = "layout_free_buffers"
MAIN, PREPACK = "main", "prepack"
_ROOT = "root"


def marked(module: Any) -> Any:
    """A fused Relax module whose functions know their constant arguments."""
    marked = relax.transform.AttachAttrLayoutFreeBuffers()(module)
    for variable, function in list(marked.functions.items()):
        attributes = getattr(function, "attrs", None)
        if attributes and ATTRIBUTE in attributes and not len(attributes[ATTRIBUTE]):
            marked.update_func(variable, function.without_attr(ATTRIBUTE))
    return marked


def unmarked(workload: Workload) -> Workload:
    """The same function with all its arguments alike."""
    return canonical_workload(workload.module[MAIN].without_attr(ATTRIBUTE))


def folded(module: Any) -> Any:
    """A Relax module of scheduled functions with the packing of its constants done."""
    split = with_packed_constants(_split(module))
    return relax.transform.DeadCodeElimination()(relax.transform.FoldConstant()(split))


def _split(module: Any) -> Any:
    """Takes the packing of constants out of each kernel, into a function of its own."""
    return relax.transform.SplitLayoutRewritePreproc()(_with_roots(module))


def _with_roots(module: Any) -> Any:
    """The module, in which a kernel that is a single block, as a scatter is, stands below a root as
    all others do: the compiler's split fails without (split_layout_rewrite_preproc.cc)."""
    rooted = tvm.IRModule(module.functions, attrs=module.attrs)
    for variable, function in module.functions.items():
        body = getattr(function, "body", None)
        if isinstance(body, SBlockRealize) and body.block.name_hint != _ROOT:
            root = SBlock([], [], [], _ROOT, body)
            rooted.update_func(variable, function.with_body(SBlockRealize([], True, root)))
    return rooted


class ArgumentSource(NamedTuple):
    """The source of an argument of the main function."""

    kind: Literal["argument", "packed"]
    place: int


class SplitKernel(NamedTuple):
    """The arguments of the numbers `packs` are laid out anew, as buffers of the types
    `packed`: by `moves`, one for each, or, where these are None, by the function `prepack` of
    `module`, which has `main`."""

    module: Any
    packs: tuple[int, ...]
    packed: tuple[Any, ...]
    sources: tuple[ArgumentSource, ...]
    moves: tuple[Move, ...] | None = None


def split_kernel(module: Any) -> SplitKernel:
    """Returns a scheduled function without the packing of its constants, and the packing."""
    main = module[MAIN]
    types = [_tensor_type(a) for a in ms.arg_info.ArgInfo.from_prim_func(main)]
    as_it_is = tuple(ArgumentSource("argument", index) for index in range(len(types)))
    if not main.attrs or ATTRIBUTE not in main.attrs:
        return SplitKernel(module, (), (), as_it_is)
    split = _split(_called(main, types))
    calls, names = _wiring(split["run"])
    if len(calls) == 1:
        return SplitKernel(module, (), (), as_it_is)
    prepack, kernel = calls
    moves = moves_of(split[prepack.function])
    parts = {MAIN: split[kernel.function]}
    if moves is None:
        parts[PREPACK] = split[prepack.function]
    functions = {name: part.with_attr("global_symbol", name) for name, part in parts.items()}
    return SplitKernel(
        module=tvm.IRModule(functions),
        packs=tuple(names[argument].place for argument in prepack.arguments),
        packed=prepack.outputs,
        sources=(*(names[argument] for argument in kernel.arguments), as_it_is[-1]),
        moves=moves,
    )


class _Call(NamedTuple):
    function: Any
    arguments: tuple[Any, ...]
    outputs: tuple[Any, ...]


def _called(main: Any, types: list[Any]) -> Any:
    """A Relax function around the kernel: the compiler splits kernels where they are called."""
    builder = relax.BlockBuilder()
    kernel = builder.add_func(main.without_attr("global_symbol"), "kernel")
    variables = [relax.Var(f"p{index}", kind) for index, kind in enumerate(types[:-1])]
    with builder.function("run", variables):
        with builder.dataflow():
            output = builder.emit_output(relax.call_tir(kernel, variables, types[-1]))
        builder.emit_func_output(output)
    return builder.finalize()


def _wiring(run: Any) -> tuple[list[_Call], dict[Any, ArgumentSource]]:
    """The calls of the function in order, and what each of its variables stands for."""
    names: dict[Any, ArgumentSource] = {
        p: ArgumentSource("argument", i) for i, p in enumerate(run.params)
    }
    calls: list[_Call] = []
    for binding in run.body.blocks[0].bindings:
        value = binding.value
        if isinstance(value, relax.TupleGetItem):
            names[binding.var] = ArgumentSource("packed", int(value.index))
        elif isinstance(value, relax.Call):
            kind = binding.var.ty
            outputs = tuple(kind.fields) if hasattr(kind, "fields") else (kind,)
            calls.append(_Call(value.args[0], tuple(value.args[1].fields), outputs))
            names[binding.var] = ArgumentSource("packed", 0)
    return calls, names


def _tensor_type(argument: Any) -> Any:
    return relax.TensorType([int(n) for n in argument.shape], str(argument.dtype))
