"""The vector registers of a CPU that code is generated for."""

from __future__ import annotations

from typing import Any

from tvm.target import codegen

from tunegate.tune.prior import VectorRegisters

_X86 = ("x86_64", "i686", "i386")
_WIDENING = (("avx512f", VectorRegisters(16, 32)), ("avx", VectorRegisters(8, 16)))
"""Registers with the feature that has them, the widest first."""
_SSE = VectorRegisters(4, 16)
_NEON = VectorRegisters(4, 32)
"""Those of scalable vectors are at least as wide."""


def vector_registers(target: Any) -> VectorRegisters:
    """Returns the vector registers of the target; of a GPU, which has none, the default."""
    if str(target.kind.name) != "llvm":
        return VectorRegisters()
    triple = str(target.attrs.get("mtriple", "") or codegen.llvm_get_system_triple())
    if not triple.startswith(_X86):
        return _NEON
    having = (r for feature, r in _WIDENING if codegen.target_has_features([feature], target))
    return next(having, _SSE)
