"""Kernels without a schedule, changed one by one."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from tvm.tirx import PrimFunc

IS_SCHEDULED = "tirx.is_scheduled"
"""The compiler's own mark of a function that its default schedules leave alone."""


def with_unscheduled(
    module: Any, changed: Callable[[Any], Any | None], leaves: Collection[str] = ()
) -> Any:
    """The module, or a copy where `changed` has another function for one that has no schedule, and
    none of the names that it `leaves`; None is for one that stays as it is."""
    others = {
        variable: other
        for variable, function in module.functions.items()
        if isinstance(function, PrimFunc) and IS_SCHEDULED not in (function.attrs or {})
        if variable.name_hint not in leaves
        if (other := changed(function)) is not None
    }
    if not others:
        return module
    module = module.clone()
    for variable, other in others.items():
        module.update_func(variable, other)
    return module
