"""The kernels of a fused Relax module: how often main calls each, and which layers they are."""

from __future__ import annotations

import hashlib
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

from tunegate.compiler.build.kernel_nodes import kernel_nodes
from tunegate.compiler.schedules.algorithm_variants import asked_algorithm
from tunegate.compiler.search.workload import Workload, canonical_workload

_FEW = 2
_OF_A_LAYOUT = "transpose"
_OF_A_CONVOLUTION = 4
"""Dimensions of its weights, which come in two orders: OIHW, and HWIO where channels are last."""


class ModelFunction(msgspec.Struct, frozen=True, kw_only=True):
    """One PrimFunc of a module. `label` names its layers in the model's own words where the weights
    tell, else its first and last node, else the operators; `weight` is its calls per inference,
    `bytes_moved` what a call reads and writes at least, `algorithm` the only form that it may have,
    '' for any."""

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
    """The functions `main` calls, in call order. `layers` comes from `layer_names`; a function
    without weights is called like its nodes."""
    calls = list(_calls(module["main"]))
    found: dict[str, list[str]] = {}
    for name, constants in calls:
        layer = next((layers[d] for d in constants if d in layers), "") if layers else ""
        found.setdefault(name, []).append(layer)
    nodes = kernel_nodes(module)
    for name, names in found.items():
        if not any(names) and name in nodes:
            names[0] = _span(_operator(name), nodes[name])
    return [_function(name, module[name], names) for name, names in found.items()]


def layer_names(model: Path) -> dict[bytes, str]:
    """Digest of an initializer's bytes -> name of the first node that uses it."""
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
            if array.ndim == _OF_A_CONVOLUTION:
                names[_digest(np.ascontiguousarray(array.transpose(2, 3, 1, 0)))] = users[
                    tensor.name
                ]
    return names


def _bytes_of(main: Any) -> float:
    """All arguments, the output among them."""
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
    """The first node of a kernel, and where it ends, without the scope that both have. A change of
    layout, which no node of the model is, stands beside one."""
    scope = nodes[0][: nodes[0].rfind("/") + 1]
    name = nodes[0] if len(nodes) == 1 else f"{nodes[0]} to {nodes[-1].removeprefix(scope)}"
    return f"{operator} ({name})" if operator == _OF_A_LAYOUT else name


def _label(named: Sequence[str], calls: int) -> str:
    """The names, and how many calls they leave out."""
    more = f" +{calls - len(named)}" if named and calls > len(named) else ""
    return ", ".join(named) + more


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
    return hashlib.sha256(array.tobytes()).digest()


def _operator(name: str) -> str:
    """`fused_conv2d10_add6_relu6` -> `conv2d_add_relu`."""
    parts = name.removeprefix("fused_").split("_")
    return "_".join(
        re.sub(r"(?<=[a-z])\d+$", "", part) if i else _first(part) for i, part in enumerate(parts)
    )


def _first(part: str) -> str:
    return re.sub(r"^((?:conv|max_pool|avg_pool|pool)\d?d?|[a-z]+)\d*$", r"\1", part)


def _flops(workload: Workload) -> float:
    try:
        return float(tvm.s_tir.analysis.estimate_tir_flops(workload.module))
    except tvm.error.TVMError:
        return 0.0  # data movement, or an operator the estimate has no rule for
