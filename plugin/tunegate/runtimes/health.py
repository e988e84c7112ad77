"""Requirements of the runtimes, each as a check with its detail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tunegate.config import AUTO, TargetConfig
from tunegate.runtimes.registry import installed_runtimes, tunes
from tunegate.runtimes.runtime import Runtime
from tunegate.system.machine.health_check import HealthCheck, in_section


def runtime_checks(targets: Sequence[TargetConfig] = ()) -> tuple[HealthCheck, ...]:
    """A line for each runtime that one of these targets may use, for what compilers need,
    and for what cannot be used; without targets all."""
    return in_section(_checks(targets), "runtimes")


def _checks(targets: Sequence[TargetConfig]) -> Iterator[HealthCheck]:
    installed = installed_runtimes()
    for runtime in installed.runtimes:
        named = [target for target in targets if target.runtime == runtime.name]
        if targets and not named and not any(_may_use(runtime, target) for target in targets):
            yield from _optional(runtime, targets)
            continue
        missing = next(filter(None, (runtime.unsupported(target) for target in named)), "")
        if missing:
            yield HealthCheck(runtime.name, ok=False, detail=missing)
            continue
        yield _versions(runtime)
        if tunes(runtime):
            yield from runtime.checks()
    for problem in installed.problems:
        yield HealthCheck("runtimes", ok=False, detail=problem)


def _optional(runtime: Runtime, targets: Sequence[TargetConfig]) -> Iterator[HealthCheck]:
    """Yields optional runtimes that `auto` would use, and what they need."""
    free = next((target for target in targets if target.runtime == AUTO), None)
    if free is not None and _versions(runtime).is_absent:
        detail = f"optional: {runtime.unsupported(free)}"
        yield HealthCheck(runtime.name, ok=True, detail=detail, is_absent=True)


def _may_use(runtime: Runtime, target: TargetConfig) -> bool:
    try:
        return target.runtime == AUTO and not runtime.unsupported(target)
    except Exception:  # noqa: BLE001 -- it is not our code, and its versions are asked next
        return True


def _versions(runtime: Runtime) -> HealthCheck:
    name = runtime.name
    try:
        versions = runtime.versions().items()
    except Exception as error:  # noqa: BLE001 -- it is not our code
        return HealthCheck(
            name, ok=False, detail=f"{type(error).__name__}: {error}".splitlines()[0]
        )
    listed = ", ".join(f"{distribution} {version}" for distribution, version in versions if version)
    missing = ", ".join(distribution for distribution, version in versions if not version)
    if listed and missing:
        return HealthCheck(name, ok=False, detail=f"{listed}, without {missing}")
    return HealthCheck(name, ok=True, detail=listed or "not installed", is_absent=not listed)
