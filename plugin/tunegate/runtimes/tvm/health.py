"""Requirements of TVM on a machine, each as a check with its detail."""

from __future__ import annotations

from collections.abc import Iterator

from tunegate.edges.machine.bytecode import bytecode_check
from tunegate.edges.machine.health_check import HealthCheck
from tunegate.edges.native.c_compiler import NO_C_COMPILER, c_compiler
from tunegate.runtimes.tvm.compiler_self_test import compiler_failure
from tunegate.runtimes.tvm.requirements import LINKERS, PINNED, linker, wrong_version


def compiler_checks() -> Iterator[HealthCheck]:
    """Yields versions, whether bytecode is kept, the compiler's own self-test, and the linker."""
    yield from map(_pinned, PINNED)
    bytecode = bytecode_check("tvm")
    if bytecode is not None:
        yield bytecode
    failure = compiler_failure()
    passed = "wrote a database, built a function"
    yield HealthCheck("compiler self-test", ok=not failure, detail=failure or passed)
    found = linker()
    missing = f"none of {', '.join(LINKERS)}: install one, builds are linked with it"
    yield HealthCheck("linker", ok=found is not None, detail=found or missing)
    # Nothing else needs one, so a machine without is not unfit.
    has_one = c_compiler()
    detail = has_one or NO_C_COMPILER
    yield HealthCheck("C compiler", ok=True, detail=detail, is_absent=not has_one)


def _pinned(distribution: str) -> HealthCheck:
    problem = wrong_version(distribution)
    advice = f"{problem}. Run: python -m pip install 'tunegate[tvm]'"
    return HealthCheck(
        distribution, ok=not problem, detail=advice if problem else PINNED[distribution]
    )
