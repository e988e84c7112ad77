"""Checks a configuration's requirements on this installation before any work: without its compiler,
a run would go on with the rest and not mention what was requested."""

from collections.abc import Collection, Iterator, Sequence

from tunegate.artifacts.candidates import CandidateBuild, Candidates, RuntimeName
from tunegate.config import AUTO, LOCAL, Config, TargetConfig
from tunegate.errors import ConfigError
from tunegate.known_extras import GROUPS, refuse_missing
from tunegate.runtimes.registry import installed_runtimes, offer_runtimes, tunes
from tunegate.runtimes.runtime import Runtime, Step, TuningRuntime
from tunegate.system.machine.health import HealthCheck, in_section
from tunegate_cache.installed_plugins import plugin_named


def require_installed(
    config: Config,
    step: Step,
    targets: Collection[str] = (),
    runtimes: Collection[RuntimeName] = (),
) -> None:
    """Checks all targets and runtimes, or those named. Raises ConfigError with the command that
    installs what one needs for this step, and EnvironmentUnfitError if this machine cannot do
    it."""
    chosen = [target for target in config.targets if not targets or target.name in targets]
    installed = installed_runtimes()
    offers = offer_runtimes(chosen, installed, only=runtimes).candidates
    for target in chosen:
        if not offers[target.name]:
            raise ConfigError(f"target {target.name}: no runtime that is installed runs there.")
    for runtime in filter(tunes, installed.runtimes):
        _require_tuning(runtime, [t for t in chosen if _has(offers[t.name], runtime)], step, offers)
    if config.executor != LOCAL and step in {"tune", "run"}:
        _require_workers(config.executor)


def _require_tuning(
    runtime: TuningRuntime, targets: Sequence[TargetConfig], step: Step, candidates: Candidates
) -> None:
    if targets:
        others = (c.runtime for c in candidates[targets[0].name] if not c.is_tuned)
        runtime.require(targets, step, next(others, ""))


def _has(candidates: Sequence[CandidateBuild], runtime: Runtime) -> bool:
    return any(candidate.runtime == runtime.name for candidate in candidates)


def _require_workers(executor: str) -> None:
    if plugin_named(GROUPS["executor"], executor) is None:
        refuse_missing("executor", executor)
        raise ConfigError(f"executor: {executor} is not installed. Write executor: local.")


# The requirements of runtimes, each as a check with its detail.


def runtime_checks(targets: Sequence[TargetConfig] = ()) -> tuple[HealthCheck, ...]:
    """Returns a line for each runtime that these targets may use, each compiler requirement, and
    each problem; without targets for all runtimes."""
    return in_section(_checks(targets), "runtimes")


def _checks(targets: Sequence[TargetConfig]) -> Iterator[HealthCheck]:
    installed = installed_runtimes()
    for runtime in installed.runtimes:
        own_targets = [target for target in targets if target.runtime == runtime.name]
        if targets and not own_targets and not any(_may_use(runtime, target) for target in targets):
            yield from _optional(runtime, targets)
            continue
        missing = next(filter(None, (runtime.unsupported(target) for target in own_targets)), "")
        if missing:
            yield HealthCheck(runtime.name, ok=False, detail=missing)
            continue
        versions = _versions(runtime)
        if not (versions.is_absent and tunes(runtime)):  # its own checks name what is missing
            yield versions
        if tunes(runtime):
            yield from runtime.checks(targets)
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
    except Exception:  # noqa: BLE001 -- not our code; its versions are read next
        return True


def _versions(runtime: Runtime) -> HealthCheck:
    name = runtime.name
    try:
        versions = runtime.versions().items()
    except Exception as error:  # noqa: BLE001 -- it is not our code
        return HealthCheck(
            name, ok=False, detail=f"{type(error).__name__}: {error}".splitlines()[0]
        )
    text = ", ".join(f"{distribution} {version}" for distribution, version in versions if version)
    missing = ", ".join(distribution for distribution, version in versions if not version)
    if text and missing:
        return HealthCheck(name, ok=False, detail=f"{text}, without {missing}")
    return HealthCheck(name, ok=True, detail=text or "not installed", is_absent=not text)
