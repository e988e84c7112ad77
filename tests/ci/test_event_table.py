from __future__ import annotations

from tunegate.ci.events import EventTable, JudgedEvent, RefusedEvent, event_refusal

NOTHING = RefusedEvent("it changes nothing", "Use push.")
TABLE: EventTable = {
    "push": JudgedEvent(base="before", head="after", writes="main"),
    "star": NOTHING,
    "watch": NOTHING,
}


def test_a_refused_event_says_why_and_what_to_use_instead() -> None:
    assert event_refusal(TABLE, "star", "") == (
        "event star is refused: it changes nothing. Use push."
    )


def test_an_unknown_event_is_not_guessed_at() -> None:
    said = event_refusal(TABLE, "moon", "Use push.")
    assert said == "event moon: it is not one that tunegate knows. Use push."
