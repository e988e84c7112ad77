from __future__ import annotations

import datetime
from typing import Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tunegate.artifacts.verdicts import ISSUE_TO_WRITE, REASON_TO_WRITE, Waiver, WaiverOffer
from tunegate.report.waiver_text import waiver_text


def offer(*models: str, source: Literal["base", "head"] = "base") -> WaiverOffer:
    waivers = tuple(
        Waiver(
            model=model,
            target="cpu",
            ceiling_percent=16,
            expires=datetime.date(2026, 12, 25),
            issue=ISSUE_TO_WRITE,
            reason=REASON_TO_WRITE,
        )
        for model in models
    )
    return WaiverOffer(waivers=waivers, counts_from=source)


@given(st.text(min_size=1, max_size=60))
def test_any_name_comes_back_from_the_block(name: str) -> None:
    text = waiver_text(offer(name))
    assert text.count("\n```") == 2
    (entry,) = yaml.safe_load(text.split("```yaml\n")[1].split("\n```")[0])["waivers"]
    assert entry["model"] == name
    assert (entry["issue"], entry["reason"]) == (ISSUE_TO_WRITE, REASON_TO_WRITE)


@pytest.mark.parametrize(
    ("source", "said"), [("base", "Merge it first"), ("head", "The file of this branch counts")]
)
def test_it_says_where_the_waiver_counts(source: Literal["base", "head"], said: str) -> None:
    assert said in waiver_text(offer("m.onnx", source=source))


def test_many_waivers_are_cut_and_counted() -> None:
    text = waiver_text(offer(*(f"m{number}.onnx" for number in range(11))))
    assert text.count("model:") == 10
    assert "1 more waiver would be needed" in text
