"""Changes that make base and head different work: other inputs, and random numbers from a seed."""

from __future__ import annotations

from tunegate.artifacts.changes import ModelPath, PolicyChange
from tunegate.artifacts.outlines import ModelInput

INPUTS_KEY = "inputs of the model"
SEEDED = "random operators with a seed of their own"


def reshaped(
    path: ModelPath, before: tuple[ModelInput, ...], after: tuple[ModelInput, ...]
) -> PolicyChange | None:
    """The change of inputs, or None where both take the same inputs, in whatever order."""
    old, new = _written(before), _written(after)
    if old == new:
        return None
    return PolicyChange(
        key=INPUTS_KEY, old=old, new=new, effect="changed", counts="now", model=path
    )


def seeded(path: ModelPath, before: tuple[str, ...], after: tuple[str, ...]) -> PolicyChange | None:
    """Random numbers from a seed are the same in every process: a
    model can know when to be slow."""
    if set(after) <= set(before):
        return None
    old, new = (", ".join(kinds) or "none" for kinds in (before, after))
    return PolicyChange(key=SEEDED, old=old, new=new, effect="changed", counts="now", model=path)


def _written(inputs: tuple[ModelInput, ...]) -> str:
    shapes = (
        f"{' '.join(filter(None, (value.name, value.dtype)))} "
        f"[{', '.join('?' if n is None else str(n) for n in value.dimensions)}]"
        for value in sorted(inputs, key=lambda value: value.name)
    )
    return ", ".join(shapes) or "none"
