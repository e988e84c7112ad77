from __future__ import annotations

import datetime

import pytest

from tests.support.waivers import TODAY, make_waiver
from tunegate.edges.config.waivers_file import parse_waivers
from tunegate.errors import ConfigError

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
        ("waivers:" + ENTRY.replace("2026-07-31", "soon"), "A waiver has model, target"),
        ("waivers:" + ENTRY.replace("ceiling-percent: 8", "ceiling-percent: 0"), "above zero"),
        ("waivers:" + ENTRY.replace("https://example.com/17", "''"), "Fill them in"),
        ("waivers:" + ENTRY + ENTRY.lstrip("\n"), "waived twice"),
        ("waivers:" + ENTRY.replace("reason", "because"), "because"),
        ("waiver:" + ENTRY, "unknown field `waiver`"),
        ("waivers: [", "w.yaml: "),
    ],
)
def test_a_file_that_cannot_be_used_is_one_clear_error(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=r"^w\.yaml: ") as caught:
        parse_waivers(text, "w.yaml", TODAY)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_ninety_days_are_the_longest() -> None:
    last = TODAY + datetime.timedelta(days=90)
    assert parse_waivers("waivers:" + ENTRY.replace("2026-07-31", str(last)), "w.yaml", TODAY)
