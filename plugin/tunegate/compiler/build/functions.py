"""The kernels of a fused Relax module: how often `main` calls each, and which layers they
compute."""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import tvm
from onnx import numpy_helper
from tvm import relax
from tvm.s_tir.meta_schedule.arg_info import ArgInfo

from tunegate.compiler.schedules.algorithm_variants import asked_algorithm
from tunegate.compiler.schedules.unscheduled import does_nothing
from tunegate.compiler.search.workload import Workload, canonical_workload

_FEW = 2
_OF_A_LAYOUT = "transpose"
_OF_A_CONVOLUTION = (3, 4)
"""Dimensions of a convolution's weights: OIW and OIHW, or WIO and HWIO where channels are last."""

CHOICE = "tunegate.choice"
"""Marks a kernel that copies one of two tensors, by its first argument: an output of an If."""


class ModelFunction(msgspec.Struct, frozen=True, kw_only=True):
    """One PrimFunc of a module. `label` names its layers as the model does: by their weights, else
    by the first and last node, else by the operators. `weight` is its calls per inference,
    `bytes_moved` the least that a call reads and writes. `algorithm` is the only variant it may
    have, '' for any."""

    name: str
    workload: Workload
    weight: int
    label: str
    operator: str
    dtype: str
    flops: float
    bytes_moved: float
    algorithm: str = ""


def functions_of(module: Any, layers: Mapping[bytes, str] | None = None) -> list[ModelFunction]:
    """Returns the functions that `main` calls, in call order, without choices and without those
    that have nothing to compute. `layers` comes from `layer_names`; a function without weights is
    named after its nodes."""
    calls = list(_calls(module["main"]))
    layers_of: dict[str, list[str]] = {}
    for name, constants in calls:
        layer = next((layers[d] for d in constants if d in layers), "") if layers else ""
        layers_of.setdefault(name, []).append(layer)
    nodes = kernel_nodes(module)
    for name, names in layers_of.items():
        if not any(names) and name in nodes:
            names[0] = _span(_operator(name), nodes[name])
    return [
        _function(name, module[name], names)
        for name, names in layers_of.items()
        if not is_choice(module[name]) and not does_nothing(module[name])
    ]


def is_choice(kernel: Any) -> bool:
    return CHOICE in (kernel.attrs or {})


def layer_names(model: Path) -> dict[bytes, str]:
    """Returns the name of the first node that uses each initializer, by the digest of its bytes."""
    proto = onnx.load(model)
    users: dict[str, str] = {}
    for node in proto.graph.node:
        for name in node.input:
            users.setdefault(name, node.name or node.output[0])
    names: dict[bytes, str] = {}
    for tensor in proto.graph.initializer:
        if tensor.name in users:
            array = numpy_helper.to_array(tensor)
            names[_digest(array)] = users[tensor.name]
            if array.ndim in _OF_A_CONVOLUTION:
                transpose = array.transpose(*range(2, array.ndim), 1, 0)
                names[_digest(np.ascontiguousarray(transpose))] = users[tensor.name]
    return names


def _bytes_of(main: Any) -> float:
    """Returns the bytes of all arguments, the output included."""
    arguments = ArgInfo.from_prim_func(main)
    sizes = (
        math.prod(int(n) for n in a.shape) * tvm.DataType(str(a.dtype)).bits / 8 for a in arguments
    )
    return float(sum(sizes))


def _function(name: str, function: Any, layers: list[str]) -> ModelFunction:
    workload = canonical_workload(function)
    operator = _operator(name)
    label = _label([*dict.fromkeys(filter(None, layers))][:_FEW], len(layers)) or operator
    return ModelFunction(
        name=name,
        workload=workload,
        weight=len(layers),
        label=label,
        operator=operator,
        dtype=str(function.params[-1].ty.dtype),
        flops=_flops(workload),
        bytes_moved=_bytes_of(workload.module["main"]),
        algorithm=asked_algorithm(function),
    )


def _span(operator: str, nodes: Sequence[str]) -> str:
    """Returns the first node of a kernel and where it ends, without the scope both share. A layout
    change, which is no node of the model, is shown beside one."""
    scope = nodes[0][: nodes[0].rfind("/") + 1]
    name = nodes[0] if len(nodes) == 1 else f"{nodes[0]} to {nodes[-1].removeprefix(scope)}"
    return f"{operator} ({name})" if operator == _OF_A_LAYOUT else name


def _label(names: Sequence[str], calls: int) -> str:
    """Returns the names, and how many calls they leave out."""
    more = f" +{calls - len(names)}" if names and calls > len(names) else ""
    return ", ".join(names) + more


def _calls(main: Any) -> Iterator[tuple[str, list[bytes]]]:
    call_tir = tvm.ir.Op.get("relax.call_tir")
    values = (binding.value for block in main.body.blocks for binding in block.bindings)
    for value in values:
        if isinstance(value, relax.Call) and value.op.same_as(call_tir):
            callee, arguments = value.args[0], value.args[1]
            fields = arguments.fields if isinstance(arguments, relax.Tuple) else [arguments]
            yield callee.name_hint, [_digest(f.value.numpy()) for f in fields if _is_constant(f)]


def _is_constant(value: Any) -> bool:
    return isinstance(value, tvm.ir.GenericConst)


def _digest(array: Any) -> bytes:
    """Returns a digest that zeros at the end of all rows do not change: weights may be padded."""
    if array.ndim > 1 and array.size and not array[..., -1].any():
        columns = np.flatnonzero(array.any(axis=tuple(range(array.ndim - 1))))
        array = array[..., : columns[-1] + 1 if columns.size else 0]
    return hashlib.sha256(array.tobytes()).digest()


def _operator(name: str) -> str:
    """`fused_conv2d10_add6_relu6` -> `conv2d_add_relu`."""
    parts = name.removeprefix("fused_").split("_")
    return "_".join(
        re.sub(r"(?<=[a-z])\d+$", "", part) if i else _without_number(part)
        for i, part in enumerate(parts)
    )


def _without_number(part: str) -> str:
    return re.sub(r"^((?:conv|max_pool|avg_pool|pool)\d?d?|[a-z]+)\d*$", r"\1", part)


def _flops(workload: Workload) -> float:
    try:
        return float(tvm.s_tir.analysis.estimate_tir_flops(workload.module))
    except tvm.error.TVMError:
        return 0.0  # data movement, or an operator the estimate has no rule for


# The ONNX nodes that a kernel computes. Legalization and fusion keep variable names, so each
# variable is named after the node whose value it holds. The names are read once fusion groups are
# known, while their operators are still visible.

_ATTRIBUTE = "tunegate.nodes"
_OF_NODE = re.compile(r"node(\d+)")


def with_node_names(module: Any, values: Mapping[Any, int]) -> Any:
    """Returns the module with variables named after their nodes. `values` maps each expression that
    an importer made from a node to the node's index."""
    main = module["main"]
    bindings = [binding for block in main.body.blocks for binding in block.bindings]
    places = {
        binding.var: place
        for binding in bindings
        if (place := values.get(binding.value, values.get(binding.var))) is not None
    }
    new_module = tvm.IRModule(module.functions, attrs=module.attrs)
    new_module.update_func(module.get_global_var("main"), _Renaming(places).visit_expr(main))
    return new_module


def nodes_of_calls(legalized: Any, grouped: Any) -> list[list[int]]:
    """Returns the node indices of each kernel call, in order, while a kernel is still a group of
    operators with its own variables. `legalized` is the module before grouping: a group's output is
    renamed, and is found again by what reads its other values."""
    readers = {
        (binding.value.args[0].name_hint, source): binding.var.name
        for binding in _bound_calls(legalized["main"])
        for source in _sources(binding)
    }
    return [
        [int(match[1]) for name in names if (match := _OF_NODE.fullmatch(name))]
        for names in (
            _inside(grouped, binding, readers) for binding in _bound_calls(grouped["main"])
        )
    ]


def with_kernel_nodes(module: Any, nodes: Sequence[Sequence[str]]) -> Any:
    """Returns the module with one function per kernel, which carries the `nodes` of each of its
    calls; the module unchanged if its calls are others."""
    kernels = [binding.value.args[0].name_hint for binding in _bound_calls(module["main"])]
    names_of: dict[str, Sequence[str]] = {}
    if len(kernels) == len(nodes):
        for kernel, names in zip(kernels, nodes, strict=True):
            names_of.setdefault(kernel, names)
    return module.with_attr(_ATTRIBUTE, json.dumps(names_of))


def kernel_nodes(module: Any) -> dict[str, Sequence[str]]:
    """Returns the nodes of each kernel by its name, in the order of computation, without kernels
    whose nodes are unknown. A kernel that is called twice has the nodes of its first call."""
    if module.attrs is None or _ATTRIBUTE not in module.attrs:
        return {}
    names_of: dict[str, list[str]] = json.loads(str(module.attrs[_ATTRIBUTE]))
    return {kernel: names for kernel, names in names_of.items() if names}


def _inside(module: Any, binding: Any, readers: Mapping[tuple[str, str], str]) -> Sequence[str]:
    """Returns the variables that a kernel call computes, its own last."""
    callee = binding.value.op
    if not isinstance(callee, tvm.ir.GlobalVar):
        return [binding.var.name]
    *others, last = _bound_calls(module[callee])
    kernel = last.value.args[0].name_hint
    reader = next((readers[kernel, x] for x in _sources(last) if (kernel, x) in readers), "")
    return [*(other.var.name for other in others), reader]


def _sources(binding: Any) -> Iterator[str]:
    """Yields the node variables that a call reads."""
    read = binding.value.args[1]
    for each in read.fields if isinstance(read, relax.Tuple) else (read,):
        if isinstance(each, relax.Var) and _OF_NODE.fullmatch(each.name):
            yield each.name


def _bound_calls(main: Any) -> Iterator[Any]:
    """Yields the bindings that call a kernel."""
    call_tir = tvm.ir.Op.get("relax.call_tir")
    for binding in _bindings(main):
        value = binding.value
        if isinstance(value, relax.Call):
            is_group = isinstance(value.op, tvm.ir.GlobalVar)
            if is_group or value.op.same_as(call_tir):
                yield binding


def _bindings(function: Any) -> Iterator[Any]:
    for block in function.body.blocks:
        yield from block.bindings


@relax.expr_functor.mutator
class _Renaming(relax.PyExprMutator):  # type: ignore[misc]
    def __init__(self, places: Mapping[Any, int]) -> None:
        super().__init__()
        self._places = places

    def visit_var_def_(self, var: Any) -> Any:
        return self._rename(var, relax.Var)

    def visit_dataflow_var_def_(self, var: Any) -> Any:
        return self._rename(var, relax.DataflowVar)

    def _rename(self, var: Any, kind: Any) -> Any:
        if var not in self._places:
            return var
        new = kind(f"node{self._places[var]}", var.ty)
        self.set_var_remap(var, new)
        return new
