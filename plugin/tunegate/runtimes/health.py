"""What must be right of the runtimes before a run can work, each as a check with its detail."""

from __future__ import annotations

from collections.abc import Iterator

from tunegate.edges.machine.health_check import HealthCheck
from tunegate.runtimes.registry import installed_runtimes, tunes
from tunegate.runtimes.runtime import Runtime


def runtime_checks() -> Iterator[HealthCheck]:
    """Yields a line for each runtime, for what compilers need, and for what cannot be used."""
    installed = installed_runtimes()
    for runtime in installed.runtimes:
        yield _versions(runtime)
        if tunes(runtime):
            yield from runtime.checks()
    for problem in installed.problems:
        yield HealthCheck("runtimes", ok=False, detail=problem)


def _versions(runtime: Runtime) -> HealthCheck:
    name = runtime.name
    try:
        versions = runtime.versions().items()
    except Exception as error:  # noqa: BLE001 -- it is not our code
        return HealthCheck(
            name, ok=False, detail=f"{type(error).__name__}: {error}".splitlines()[0]
        )
    listed = ", ".join(f"{distribution} {version}" for distribution, version in versions)
    return HealthCheck(name, ok=True, detail=listed or "not installed")
