"""Requirements of a configuration on this installation, checked before any work: with a compiler
missing, a run would go on with what is left and say nothing of what it was asked for."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tunegate.artifacts.candidates import CandidateBuild, Candidates, RuntimeName
from tunegate.config import LOCAL, Config, TargetConfig
from tunegate.errors import ConfigError
from tunegate.known_extras import GROUPS, refuse_missing
from tunegate.runtimes.registry import installed_runtimes, offered, tunes
from tunegate.runtimes.runtime import Runtime, Step, TuningRuntime
from tunegate_cache.installed_plugins import plugin_named


def require_installed(
    config: Config,
    step: Step,
    targets: Collection[str] = (),
    runtimes: Collection[RuntimeName] = (),
) -> None:
    """Looks at all targets and runtimes, or at those named. Raises ConfigError with the command
    that installs what one needs for this step, and EnvironmentUnfitError where this machine cannot
    do it."""
    wanted = [target for target in config.targets if not targets or target.name in targets]
    installed = installed_runtimes()
    found = offered(wanted, installed, only=runtimes).candidates
    for target in wanted:
        if not found[target.name]:
            raise ConfigError(f"target {target.name}: no runtime that is installed runs there.")
    for runtime in filter(tunes, installed.runtimes):
        _require_tuning(runtime, [t for t in wanted if _has(found[t.name], runtime)], step, found)
    if config.executor != LOCAL and step in {"tune", "run"}:
        _require_workers(config.executor)


def _require_tuning(
    runtime: TuningRuntime, targets: Sequence[TargetConfig], step: Step, found: Candidates
) -> None:
    if targets:
        others = (c.runtime for c in found[targets[0].name] if not c.is_tuned)
        runtime.require(targets, step, next(others, ""))


def _has(candidates: Sequence[CandidateBuild], runtime: Runtime) -> bool:
    return any(each.runtime == runtime.name or each.extends for each in candidates)


def _require_workers(executor: str) -> None:
    if plugin_named(GROUPS["executor"], executor) is None:
        refuse_missing("executor", executor)
        raise ConfigError(f"executor: {executor} is not installed. Write executor: local.")
