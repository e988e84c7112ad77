from __future__ import annotations

import msgspec

from tests.support.golden import Golden
from tests.support.history import entry, history
from tests.support.html_outline import outline
from tunegate.render.history import render, series

LOCATION = "s3://ml-tuning/team-vision"


def test_the_page_says_what_it_said_when_it_was_last_reviewed(golden: Golden) -> None:
    golden.check("history.html.txt", "\n".join(outline(render(history(), LOCATION)).lines) + "\n")


def test_the_same_entries_give_the_same_bytes() -> None:
    assert render(history(), LOCATION) == render(tuple(reversed(history())), LOCATION)


def test_times_of_two_machines_are_two_series() -> None:
    found = series((entry(1), entry(2), entry(3, device="another")))
    assert [(each.device, len(each.entries)) for each in found] == [
        ("AMD EPYC 7B13", 2),
        ("another", 1),
    ]


def test_the_latest_run_is_the_first_row() -> None:
    (found,) = series(tuple(entry(at) for at in range(50)))
    assert found.table.rows[0].at > found.table.rows[1].at
    assert len(found.entries) == 50
    assert len(found.table.rows) == 30


def test_no_name_opens_a_tag_and_no_text_hides() -> None:
    page = render(history(), LOCATION)
    assert "<script" not in page
    assert "<img" not in page
    assert "\u202e" not in page


def test_a_time_that_no_calendar_has_is_no_crash() -> None:
    assert "1970" in render((msgspec.structs.replace(entry(0), at=2**62, head_ms=None),), LOCATION)
