"""Inputs that a model no longer takes as it did: its latencies are then of other work."""

from __future__ import annotations

from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.outlines import ModelInput
from tunegate.artifacts.policy_changes import PolicyChange

KEY = "inputs of the model"


def reshaped(
    path: ModelPath, before: tuple[ModelInput, ...], after: tuple[ModelInput, ...]
) -> PolicyChange | None:
    """None where both take the same inputs, in whatever order."""
    old, new = _written(before), _written(after)
    if old == new:
        return None
    return PolicyChange(key=KEY, old=old, new=new, effect="changed", counts="now", model=path)


def _written(inputs: tuple[ModelInput, ...]) -> str:
    shapes = (
        f"{value.name} [{', '.join('?' if n is None else str(n) for n in value.dimensions)}]"
        for value in sorted(inputs, key=lambda value: value.name)
    )
    return ", ".join(shapes) or "none"
