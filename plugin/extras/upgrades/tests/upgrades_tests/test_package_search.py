"""The search for the package that makes a model slower."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tunegate_upgrades.package_search import FoundPackages, search

names = st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=12, unique=True)


@given(names, st.data())
def test_one_package_to_blame_is_found_in_few_measurements(
    changed: list[str], data: st.DataObject
) -> None:
    guilty = data.draw(st.sampled_from(changed))
    asked: list[frozenset[str]] = []

    def is_slower(packages: frozenset[str]) -> bool:
        asked.append(packages)
        return guilty in packages

    assert search(changed, is_slower) == FoundPackages((guilty,))
    assert len(asked) <= 2 + 2 * math.ceil(math.log2(len(changed)))
    if guilty == changed[0]:
        assert len(asked) <= 1


@given(names.filter(lambda each: len(each) > 1))
def test_packages_that_only_together_make_it_slower_are_all_named(changed: list[str]) -> None:
    found = search(changed, lambda packages: packages == frozenset(changed))
    assert found == FoundPackages(tuple(changed), "none of them alone does it")


@given(names.filter(lambda each: len(each) > 1))
def test_what_cannot_be_told_ends_the_search(changed: list[str]) -> None:
    found = search(changed, lambda _: None)
    assert (set(found.packages), found.is_one) == (set(changed), False)
