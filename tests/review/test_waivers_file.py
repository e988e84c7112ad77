from __future__ import annotations

import datetime

import pytest

from tests.support.waivers import TODAY, make_waiver
from tunegate.errors import ConfigError
from tunegate.review.waivers import parse_waivers

ENTRY = """
  - model: models/m.onnx
    target: cpu
    ceiling-percent: 8
    expires: 2026-07-31
    issue: https://example.com/17
    reason: a wider head, agreed with product
"""


def test_a_waiver_is_read() -> None:
    assert parse_waivers("waivers:" + ENTRY, "w.yaml", TODAY) == (make_waiver(),)


@pytest.mark.parametrize("text", ["", "waivers: []\n", "# none\n"])
def test_no_waivers_are_no_trouble(text: str) -> None:
    assert parse_waivers(text, "w.yaml", TODAY) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("waivers:" + ENTRY.replace("2026-07-31", "2027-07-31"), "over 90 days ahead"),
        (
            "waivers:" + ENTRY.replace("2026-07-31", "soon"),
            "waivers[0].expires: expected a date as year-month-day",
        ),
        ("waivers:" + ENTRY.replace("ceiling-percent: 8", "ceiling-percent: 0"), "above zero"),
        ("waivers:" + ENTRY.replace("https://example.com/17", "''"), "Fill them in"),
        ("waivers:" + ENTRY + ENTRY.lstrip("\n"), "waived twice"),
        ("waivers:" + ENTRY.replace("reason", "because"), "because"),
        ("waiver:" + ENTRY, "unknown key waiver. Did you mean waivers?"),
        ("waivers: [", "w.yaml: "),
    ],
)
def test_a_file_that_cannot_be_used_is_one_clear_error(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=r"^w\.yaml: ") as caught:
        parse_waivers(text, "w.yaml", TODAY)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_that_is_wrong_is_told_at_once_in_our_own_words() -> None:
    wrong = ENTRY.replace("ceiling-percent", "ceiling").replace("https://example.com/17", "17")
    with pytest.raises(ConfigError) as caught:
        parse_waivers("waivers:" + wrong + ENTRY.replace("8", "8%"), "w.yaml", TODAY)
    keys = "model, target, ceiling-percent, expires, issue, reason"
    assert [str(caught.value), *caught.value.others] == [
        "w.yaml: unknown key waivers[0].ceiling. Did you mean ceiling-percent?",
        "w.yaml: waivers[0].issue: expected a text, not 17. Put it in quotes.",
        'w.yaml: waivers[1].ceiling-percent must be a number of percent without a unit, not "8%".',
        f"w.yaml: A waiver has {keys}.",
    ]


@pytest.mark.parametrize(
    "text", ["waivers: [3]", "- a", "waivers: {a: 1}", "waivers:\n", "3", "a: &a [*a]"]
)
def test_a_file_of_another_form_is_one_clear_error(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^w\.yaml: .*\.$"):
        parse_waivers(text, "w.yaml", TODAY)


def test_ninety_days_are_the_longest() -> None:
    last = TODAY + datetime.timedelta(days=90)
    assert parse_waivers("waivers:" + ENTRY.replace("2026-07-31", str(last)), "w.yaml", TODAY)
