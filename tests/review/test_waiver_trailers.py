from __future__ import annotations

import pytest

from tests.support.waivers import TODAY, make_waiver
from tunegate.errors import ConfigError
from tunegate.ports import Trailer
from tunegate.review.waivers import parse_trailers

VALUE = (
    "{model: models/m.onnx, target: cpu, ceiling-percent: 8, issue: https://example.com/17, "
    "reason: 'a wider head, agreed with product'}"
)
COMMIT = "a1b2c3d4e5f60718"


def test_a_trailer_is_a_waiver_that_ends_with_its_pull_request() -> None:
    assert parse_trailers([Trailer(COMMIT, VALUE)], TODAY) == (make_waiver(expires=TODAY),)


def test_the_newest_commit_counts() -> None:
    newest = Trailer(COMMIT, VALUE.replace("percent: 8", "percent: 5"))
    (waiver,) = parse_trailers([newest, Trailer(COMMIT, VALUE)], TODAY)
    assert waiver.ceiling_percent == 5


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("because I say so", "Write {model"),
        ("[" * 100, "Write {model"),
        (VALUE.replace("}", ", expires: 2027-01-01}"), "pull request only"),
        (VALUE.replace("percent: 8", "percent: -1"), "above zero"),
        (VALUE.replace("issue: https://example.com/17, ", ""), "issue is missing. Add it."),
    ],
)
def test_what_cannot_be_understood_is_one_clear_error(value: str, said: str) -> None:
    with pytest.raises(ConfigError, match=r"^Tunegate-Waiver of commit a1b2c3d4e5f6: ") as caught:
        parse_trailers([Trailer(COMMIT, value)], TODAY)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
