"""The picture of ARCHITECTURE.md is what the imports are."""

from __future__ import annotations

import pytest

from tests.house.picture import PAGE, PURPOSES, page_with, picture, reduced, room_of

MAX_PAGE_LINES = 150


def test_the_picture_is_that_of_the_code() -> None:
    assert PAGE.read_text() == page_with(picture()), "make picture"


def test_the_page_can_be_read_in_one_go() -> None:
    assert len(PAGE.read_text().splitlines()) <= MAX_PAGE_LINES


def test_each_arrow_that_follows_from_others_is_left_out() -> None:
    arrows = {"a": {"b", "c", "d"}, "b": {"c"}, "c": {"d"}, "d": set()}
    assert reduced(arrows) == {"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": set()}


def test_rooms_that_import_each_other_are_an_error() -> None:
    with pytest.raises(AssertionError, match="import each other"):
        reduced({"a": {"b"}, "b": {"a"}})


@pytest.mark.parametrize(
    ("module", "room"),
    [
        ("tunegate", ""),
        ("tunegate.errors", "tunegate.ports"),
        ("tunegate.gate.decision", "tunegate.gate"),
        ("tunegate.edges.git.fetch", "tunegate.edges"),
        ("tunegate.edges.metaschedule.space", "tunegate.edges.metaschedule"),
        ("tunegate_action.main", "tunegate_action"),
        ("tunegate_cache.installed_plugins", "tunegate_cache.format"),
    ],
)
def test_a_module_is_in_one_room(module: str, room: str) -> None:
    assert room_of(module) == room
    assert room in {"", *PURPOSES}
