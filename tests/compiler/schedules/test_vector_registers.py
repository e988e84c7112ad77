from __future__ import annotations

import pytest
import tvm

from tunegate.compiler.targets import vector_registers
from tunegate.tune.prior import VectorRegisters


@pytest.mark.parametrize(
    ("cpu", "lanes", "count"),
    [("znver5", 16, 32), ("skylake-avx512", 16, 32), ("haswell", 8, 16), ("x86-64", 4, 16)],
)
def test_they_are_those_of_the_cpu_that_code_is_for(cpu: str, lanes: int, count: int) -> None:
    target = tvm.target.Target({"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": cpu})
    assert vector_registers(target) == VectorRegisters(lanes, count)


def test_other_architectures_have_at_least_those_of_128_bits() -> None:
    arm = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "neoverse-n1"}
    assert vector_registers(tvm.target.Target(arm)) == VectorRegisters(4, 32)


def test_a_gpu_has_none_and_gets_the_default() -> None:
    target = tvm.target.Target({"kind": "cuda", "arch": "sm_80"})
    assert vector_registers(target) == VectorRegisters()
