from __future__ import annotations

from tunegate.ci_hosts.event_table import (
    EventTable,
    JudgedEvent,
    RefusedEvent,
    as_markdown,
    refusal,
)

EVENTS: EventTable = {
    "push": JudgedEvent(base="the commit before", head="the commit", writes="main"),
    "comment": RefusedEvent("it changes nothing", "Use push."),
    "review": RefusedEvent("it changes nothing", "Use push."),
    "status": RefusedEvent("it names one commit", "Give both."),
}


def test_a_page_shows_what_is_judged_and_refusals_with_one_reason_together() -> None:
    lines = as_markdown(EVENTS).splitlines()
    assert "| `push` | the commit before | the commit | main |" in lines
    assert "| `comment`, `review` | it changes nothing | Use push. |" in lines
    assert "| `status` | it names one commit | Give both. |" in lines
    assert len(lines) == 8


def test_a_refusal_says_why_and_what_to_do_instead() -> None:
    assert refusal(EVENTS, "status", "Give base and head.") == (
        "event status is refused: it names one commit. Give both."
    )


def test_an_event_that_the_table_does_not_have_is_unknown() -> None:
    said = refusal(EVENTS, "sunrise", "Give base and head.")
    assert said == "event sunrise: it is not one that tunegate knows. Give base and head."
