"""Problems of an imported model that the compiler cannot build, found without compiling a
kernel."""

from __future__ import annotations

import re
from typing import Any

from tvm import relax
from tvm.tirx import IntImm, PrimFunc

_CALL_TIR = "relax.call_tir"
_OPERATOR = re.compile(r"^R\.(?:nn\.)?([\w.]+)\(", re.MULTILINE)
_MAX_TEXT = 120


def unbuildable(module: Any, target: Any) -> str:
    """Says why a fused Relax module cannot be built; '' where nothing is known against it."""
    return _dynamic(module) or _unlowered(module, target)


def _dynamic(module: Any) -> str:
    """Names the first kernel or output whose extents are not numbers."""
    for variable, function in module.functions.items():
        if isinstance(function, PrimFunc) and not all(_is_static(p.ty) for p in function.params):
            kernel = str(variable.name_hint).removeprefix("fused_")
            return f"shapes that depend on data (kernel {kernel}) are not supported"
    kind = module["main"].ret_ty
    if not all(_is_static(each) for each in getattr(kind, "fields", [kind])):
        return "outputs whose shape depends on data are not supported"
    return ""


def _is_static(kind: Any) -> bool:
    shape = getattr(kind, "shape", None)
    if isinstance(kind, relax.TensorType):
        if not isinstance(shape, relax.ShapeExpr):
            return False
        shape = shape.values
    return shape is None or all(isinstance(extent, IntImm) for extent in shape)


def _unlowered(module: Any, target: Any) -> str:
    """Says which operator has no code in the layout it was given. The virtual machine's code is
    generated only where operators are left, and no kernel is compiled for it."""
    if not any(_is_left(binding.value) for binding in _bindings(module["main"])):
        return ""
    try:
        with target:
            lowered = relax.get_default_pipeline(target)(module)
        relax.vm_build._vmcodegen(relax.ExecBuilder(), lowered)
    except Exception as error:
        return f"the compiler has no code for {_offending(str(error))}"
    return ""


def _bindings(main: Any) -> list[Any]:
    return [binding for block in main.body.blocks for binding in block.bindings]


def _is_left(value: Any) -> bool:
    return isinstance(value, relax.Call) and getattr(value.op, "name", _CALL_TIR) != _CALL_TIR


def _offending(text: str) -> str:
    """Names the operator that an error is about, else gives its last line."""
    operator = _OPERATOR.search(text)
    lines = text.strip().splitlines() or ["an operator"]
    return operator.group(1) if operator else lines[-1].strip()[:_MAX_TEXT]
