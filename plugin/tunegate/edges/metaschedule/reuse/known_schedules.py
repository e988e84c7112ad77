"""Known schedules of an open model: those that its records give, and those that are slower inside
it. That hangs on no precision, so each is asked once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Generic, TypeVar

_Choice = TypeVar("_Choice")


class KnownSchedules(Generic[_Choice]):
    """Kernels are those of one model, by their names. Schedules are told apart by their
    decisions."""

    def __init__(self) -> None:
        self._chosen: dict[str, tuple[object, _Choice]] = {}
        self._slower: dict[tuple[str, Hashable], bool] = {}

    def chosen(self, name: str, given: object, choose: Callable[[], _Choice]) -> _Choice:
        """Returns the choice out of what is given, its records and their source, or what was chosen
        when the same was given last."""
        known = self._chosen.get(name)
        if known is None or known[0] != given:
            known = self._chosen[name] = given, choose()
        return known[1]

    def tried(self, name: str, schedule: Hashable, *, slower: bool) -> None:
        """Remembers that this schedule was tried in the model."""
        self._slower[name, schedule] = slower

    def forgive(self, names: Collection[str]) -> None:
        """Takes back that schedules of these kernels are slower: the model is faster with them."""
        for name, schedule in self._slower:
            if name in names:
                self._slower[name, schedule] = False

    def is_slower(self, name: str, schedule: Hashable) -> bool | None:
        """Says whether the schedule is slower inside the model; None where it was not tried."""
        return self._slower.get((name, schedule))
