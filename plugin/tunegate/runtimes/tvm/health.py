"""Requirements of TVM on a machine, each as a check with its detail."""

from __future__ import annotations

from collections.abc import Iterator

from tunegate.edges.machine.bytecode import bytecode_check
from tunegate.edges.machine.health_check import HealthCheck
from tunegate.edges.metaschedule.forms import installed_forms
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
    for form in installed_forms():
        yield from form.checks()


def _pinned(distribution: str) -> HealthCheck:
    problem = wrong_version(distribution)
    advice = f"{problem}. Run: python -m pip install 'tunegate[tvm]'"
    return HealthCheck(
        distribution, ok=not problem, detail=advice if problem else PINNED[distribution]
    )
