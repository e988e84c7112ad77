"""The check whether the given cases of a model suffice to prove a build inside its budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tunegate.artifacts.changes import ModelPath
from tunegate.config import Config, ValuesConfig
from tunegate.edges.machine.health_check import HealthCheck
from tunegate.gate.error_budget import fewest_samples
from tunegate.plurals import plural
from tunegate.selection import entry_for, values_for


def budgets_check(config: Config, names: Iterable[ModelPath]) -> Iterator[HealthCheck]:
    """Yields a warning for each model with a budget that its cases are too few for: nothing but
    float32 can ship then. Values that are drawn are never too few."""
    for name in names:
        entry = entry_for(config, name)
        if entry is None or entry.accuracy == "same":
            continue
        given, needed = _cases(values_for(config, name).values()), fewest_samples(entry.accuracy)
        if 0 < given < needed:
            are = plural(given, "case is", "cases are")
            detail = (
                f"{name}: {are} given, and to show that a build is inside its budget takes "
                f"{plural(needed, 'case')}: nothing but float32 can ship"
            )
            yield HealthCheck("accuracy", ok=True, warns=True, detail=detail)


def _cases(values: Iterable[ValuesConfig]) -> int:
    """The number of cases that the values come to; 0 where some of them are drawn."""
    found = [*values]
    if any(each.low is not None for each in found):
        return 0
    return max((len(each.cases) or 1 for each in found), default=0)
