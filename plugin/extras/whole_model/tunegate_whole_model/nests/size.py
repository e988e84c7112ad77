"""Decides which models are small enough for one launch to be worth a build of its own."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.compiler.build.functions import ModelFunction
from tunegate.compiler.targets import ResolvedTarget
from tunegate.errors import NotOfferedError

_MOST_FLOPS = 20e6
"""A thread's operations in about 200 µs; launching a kernel takes 1 µs."""
_MEGA = 1e6


def require_small(functions: Sequence[ModelFunction], target: ResolvedTarget) -> None:
    """Raises NotOfferedError if kernel launches do not matter for the model."""
    threads = int(target.attributes.get("num-cores", 1))
    if threads == 1:
        raise NotOfferedError("it has one thread, which nobody launches")
    operations = sum(each.flops * each.weight for each in functions)
    if operations > threads * _MOST_FLOPS:
        message = (
            f"it has {operations / _MEGA:.0f} million operations, and launches are no matter "
            f"beyond {threads * _MOST_FLOPS / _MEGA:.0f}"
        )
        raise NotOfferedError(message)
