"""The packages that differ between two sides, and the mixtures that are tried."""

from __future__ import annotations

from tunegate.measure.bench_messages import Sides
from tunegate_upgrades.lock_files.lock import PinnedPackage
from tunegate_upgrades.locked_sides import LockedSides


def pins(**versions: str) -> dict[str, PinnedPackage]:
    return {name: PinnedPackage(name=name, version=each) for name, each in versions.items()}


SIDES = LockedSides(
    pins=Sides(
        pins(arrays="1", fast="1", gone="1", same="1"),
        pins(arrays="2", fast="2", more="1", same="1"),
    ),
    roots=("fast",),
)


def versions(names: frozenset[str]) -> dict[str, str]:
    return {pin.name: pin.version for pin in SIDES.mixture(names)}


def test_the_runtime_is_the_first_suspect() -> None:
    assert SIDES.changed_names() == ("fast", "arrays", "gone", "more")
    assert SIDES.both_versions("more") == "more none -> 1"


def test_a_mixture_has_some_packages_of_the_head() -> None:
    assert versions(frozenset({"fast"})) == {"arrays": "1", "fast": "2", "gone": "1", "same": "1"}
    assert versions(frozenset({"gone", "more"})) == {
        "arrays": "1",
        "fast": "1",
        "more": "1",
        "same": "1",
    }


def test_all_of_them_are_the_head_and_none_the_base() -> None:
    base, head = SIDES.pins
    assert set(SIDES.mixture(frozenset())) == set(base.values())
    assert set(SIDES.mixture(frozenset(SIDES.changed_names()))) == set(head.values())
