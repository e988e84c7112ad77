"""The targets that count: the base's as the base defines them, and those that only the head has."""

from __future__ import annotations

from collections.abc import Iterator

from tunegate.artifacts.changes import PolicyChange
from tunegate.config import Config, TargetConfig
from tunegate.policy.rules import TARGET
from tunegate.policy.sections import merged_section, section_changes


def merged_targets(base: Config, head: Config) -> tuple[TargetConfig, ...]:
    """The base's first, in its order."""
    theirs = {target.name: target for target in head.targets}
    kept = [merged_section(ours, theirs.get(ours.name, ours), TARGET) for ours in base.targets]
    known = names(base)
    return (*kept, *(target for target in head.targets if target.name not in known))


def target_changes(base: Config, head: Config) -> Iterator[PolicyChange]:
    """Targets that are gone, new, or defined otherwise."""
    ours = {target.name: target for target in base.targets}
    theirs = {target.name: target for target in head.targets}
    for name, target in ours.items():
        if name in theirs:
            yield from section_changes(target, theirs[name], TARGET, "targets[]", target=name)
        else:
            yield PolicyChange(
                key="targets[].name",
                old=name,
                new="removed",
                effect="loosened",
                counts="once merged",
                target=name,
            )
    for name in theirs:
        if name not in ours:
            yield PolicyChange(
                key="targets[].name",
                old="not set",
                new=name,
                effect="tightened",
                counts="now",
                target=name,
            )


def names(config: Config) -> tuple[str, ...]:
    return tuple(target.name for target in config.targets)
