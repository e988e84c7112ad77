"""The packages of both sides of an upgrade, and mixtures of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from tunegate.measure.bench_messages import Sides
from tunegate_upgrades.lock_files.lock import PinnedPackage

Pins = Mapping[str, PinnedPackage]
MakeEnvironment = Callable[[Sequence[PinnedPackage]], Path]


class LockedSides(msgspec.Struct, frozen=True, kw_only=True):
    """The packages of both sides, and those of the runtime itself."""

    pins: Sides[Pins]
    roots: tuple[str, ...]

    def changed_names(self) -> tuple[str, ...]:
        """Returns the packages that differ, the runtime's first."""
        base, head = self.pins
        names = (*self.roots, *sorted({*base, *head} - {*self.roots}))
        return tuple(name for name in names if _version(base, name) != _version(head, name))

    def mixture(self, names: frozenset[str]) -> tuple[PinnedPackage, ...]:
        """Returns the base's packages, with these of the head."""
        base, head = self.pins
        kept = {name: pin for name, pin in base.items() if name not in names}
        return tuple((kept | {name: pin for name, pin in head.items() if name in names}).values())

    def both_versions(self, name: str) -> str:
        """Returns both versions of a package."""
        base, head = self.pins
        return f"{name} {_version(base, name)} -> {_version(head, name)}"


def _version(pins: Pins, name: str) -> str:
    found = pins.get(name)
    return found.version if found is not None else "none"
