"""The report names the packages that were found."""

from __future__ import annotations

import pytest

from tunegate.measure.bench_messages import Sides
from tunegate_upgrades.culprits import sentence
from tunegate_upgrades.locked_sides import LockedSides
from tunegate_upgrades.package_search import FoundPackages
from upgrades_tests.test_locked_sides import SIDES, pins

ONE = LockedSides(pins=Sides(pins(fast="1"), pins(fast="2")), roots=("fast",))


@pytest.mark.parametrize(
    ("sides", "found", "said"),
    [
        (ONE, FoundPackages(("fast",)), "fast 1 -> 2 is all that differs"),
        (SIDES, FoundPackages(("gone",)), "gone 1 -> none did it, of 4 packages that differ"),
        (
            SIDES,
            FoundPackages(("fast", "gone"), "it could not be told further"),
            "one of fast 1 -> 2, gone 1 -> none, or several together: it could not be told further",
        ),
    ],
)
def test_the_packages_that_were_found_are_told(
    sides: LockedSides, found: FoundPackages, said: str
) -> None:
    assert sentence(sides, found) == said
