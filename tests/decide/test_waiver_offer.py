import datetime
import math
from typing import Literal

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import report_parts as parts
from tests.support.present import present
from tests.support.waivers import make_waiver, slowed
from tunegate.artifacts.changes import Revisions
from tunegate.artifacts.measurements import Comparison, Interval
from tunegate.artifacts.verdicts import ISSUE_TO_WRITE, REASON_TO_WRITE, WaiverOffer
from tunegate.config import GateConfig
from tunegate.decide.decision import bounds, percent_interval
from tunegate.decide.waiving import unbounded_steps, waiver_offer, waiver_state
from tunegate.errors import ConfigError
from tunegate.report.waiver_text import waiver_text, waiver_yaml
from tunegate.review.gate_rules import GateRules, Policies
from tunegate.review.waivers import parse_waivers

TODAY = datetime.date(2026, 11, 25)
SLOW = Interval(low=10.9, center=12.4, high=13.9)


def compared(change: Interval = SLOW, decision: str = "fail") -> Comparison:
    return parts.comparison(change, 4.8, decision=decision)


def offered(
    *comparisons: Comparison,
    status: Literal["fail", "pass", "error"] = "fail",
    source: str = "base",
) -> WaiverOffer | None:
    gate = msgspec.structs.replace(GateConfig(), waivers_from=source)
    rules = GateRules(gate=gate, policies=Policies(today=TODAY))
    found = parts.finding(status, "", change_percent=SLOW)
    return waiver_offer(parts.verdict(status, 1, found), comparisons, rules)


@given(st.floats(0.1, 500))
def test_the_offer_would_cover_what_was_measured_and_may_be_written(high: float) -> None:
    change = Interval(low=high / 2, center=high * 0.75, high=high)
    offer = present(offered(compared(change)))
    (waiver,) = offer.waivers
    assert waiver_state(waiver, slowed(change), TODAY) == "covers"
    assert waiver.expires == TODAY + datetime.timedelta(days=30)
    assert (waiver.issue, waiver.reason) == (ISSUE_TO_WRITE, REASON_TO_WRITE)
    with pytest.raises(ConfigError, match="issue and reason still have the offer's placeholder"):
        parse_waivers(waiver_yaml(offer), "tunegate-waivers.yaml", TODAY)


@pytest.mark.parametrize(("launches", "most_percent"), [(4, 13), (10, 4)])
@pytest.mark.parametrize("noise", [0.02, 0.05])
def test_the_next_run_of_the_same_change_seldom_exceeds_it(
    launches: int, most_percent: float, noise: float
) -> None:
    draw, runs = np.random.default_rng(1), 400

    def measured() -> Interval:
        effects = [*draw.normal(math.log(1.12), noise, launches)]
        return percent_interval(bounds(effects, analyses=6, cells=1))

    offers = [offer for _ in range(runs) if (offer := offered(compared(measured())))]
    assert len(offers) > 0.9 * runs
    exceeded = sum(
        waiver_state(o.waivers[0], slowed(measured()), TODAY) == "exceeded" for o in offers
    )
    assert 100 * exceeded / len(offers) <= most_percent


def test_what_may_be_anything_gets_no_ceiling_and_says_what_to_do() -> None:
    wide = Interval(low=3.4, center=34.4, high=580)
    assert offered(compared(wide)) is None
    found = parts.finding("fail", "", change_percent=wide)
    (step,) = unbounded_steps(parts.verdict("fail", 1, found), [compared(wide)])
    assert step.text == (
        f"No waiver is offered for {found.model} on {found.target}: +3 to +580% is too wide for a "
        "ceiling. Measure again on a quieter runner, or raise --gate-seconds, or the Action's "
        "input gate-seconds (gate.seconds counts once it is merged)."
    )
    assert not list(unbounded_steps(parts.verdict("fail", 1, found), [compared()]))
    assert not list(unbounded_steps(parts.verdict("pass", 0), [compared(wide)]))


@given(st.floats(0.1, 400), st.floats(0, 1))
def test_no_ceiling_lies_far_above_the_slowdown(center: float, width: float) -> None:
    change = Interval(low=center * 0.9, center=center, high=center + width * 600)
    offer = offered(compared(change))
    if offer is not None:
        most = max(1.25 * center, center + 3, center + 2 * max(50, center))
        assert offer.waivers[0].ceiling_percent <= 1.34 * most + 1


@pytest.mark.parametrize("high", [14.0, 14.9, 15.5])
def test_two_runs_of_one_commit_have_one_ceiling(high: float) -> None:
    """The upper bound of few launches differs from run to run, and the slowdown hardly does."""
    offers = [offered(compared(Interval(low=8, center=at, high=high))) for at in (11.6, 12.4)]
    assert [each.waivers[0].ceiling_percent for each in offers if each] == [20, 20]


@given(st.floats(3, 300))
def test_a_ceiling_of_a_narrow_interval_hides_no_second_slowdown_of_its_size(center: float) -> None:
    offer = present(offered(compared(Interval(low=center, center=center, high=center))))
    assert center + 3 < offer.waivers[0].ceiling_percent <= max(1.7 * center, center + 6)


@pytest.mark.parametrize("source", ["base", "head"])
def test_it_says_whose_file_counts(source: str) -> None:
    assert present(offered(compared(), source=source)).counts_from == source


def with_waivers(policies: Policies) -> WaiverOffer | None:
    found = parts.finding("fail", "", change_percent=SLOW)
    rules = GateRules(gate=GateConfig(), policies=policies)
    return waiver_offer(parts.verdict("fail", 1, found), [compared()], rules)


def test_a_waiver_that_allows_too_little_is_to_be_changed_and_keeps_what_it_says() -> None:
    filed = make_waiver(model=parts.MODEL, ceiling_percent=4.0, expires=TODAY)
    offer = present(with_waivers(Policies(waivers=(filed,), today=TODAY)))
    (waiver,) = offer.waivers
    assert offer.filed == (waiver.cell,)
    assert (waiver.issue, waiver.reason) == (filed.issue, filed.reason)
    assert waiver_state(waiver, slowed(SLOW), TODAY) == "covers"
    assert "change that entry to this one" in waiver_text(offer)
    assert "add this to" not in waiver_text(offer)
    assert parse_waivers(waiver_yaml(offer), "tunegate-waivers.yaml", TODAY) == (waiver,)


def test_an_entry_of_the_whole_model_is_named_beside_the_offer_for_a_profile() -> None:
    whole = make_waiver(model=parts.MODEL.partition("@")[0], ceiling_percent=4.0)
    found = parts.finding("fail", "", model=f"{whole.model}@long", change_percent=SLOW)
    cell = msgspec.structs.replace(compared().cell, model=found.model)
    slow = msgspec.structs.replace(compared(), cell=cell)
    rules = GateRules(gate=GateConfig(), policies=Policies(waivers=(whole,), today=TODAY))
    offer = present(waiver_offer(parts.verdict("fail", 1, found), [slow], rules))
    assert "Its entry for the whole model may stay" in waiver_text(offer)


def test_an_offer_beside_a_file_with_a_mistake_says_to_mend_that_entry() -> None:
    """Its entries count for nothing, so nobody knows whether one is of this model."""
    text = waiver_text(present(with_waivers(Policies(today=TODAY, has_unread_waivers=True))))
    assert "`tunegate-waivers.yaml` has a mistake, so none of its entries counts" in text
    assert "an entry, change it to this one, otherwise add this to" in text


def test_a_waiver_that_only_has_to_be_merged_is_not_offered_again() -> None:
    later = TODAY + datetime.timedelta(days=9)
    pending = make_waiver(model=parts.MODEL, ceiling_percent=20.0, expires=later)
    assert with_waivers(Policies(pending_waivers=(pending,), today=TODAY)) is None
    signed = Policies(pending_waivers=(pending,), signed_waivers=(pending,), today=TODAY)
    assert present(with_waivers(signed)).filed == ()


def test_what_no_waiver_cures_gets_no_offer() -> None:
    assert offered(compared(decision="pass")) is None
    assert offered(compared(), status="pass") is None
    assert offered(compared(), status="error") is None
    assert offered() is None


def test_one_failure_beyond_latency_spoils_the_offer() -> None:
    rules = GateRules(gate=GateConfig(), policies=Policies(today=TODAY))
    slow = parts.finding("fail", "", change_percent=SLOW)
    large = parts.finding("fail", "a larger artifact", model="other.onnx")
    assert waiver_offer(parts.verdict("fail", 1, slow, large), [compared()], rules) is None


def test_two_files_have_no_place_for_a_waiver() -> None:
    verdict = parts.verdict("fail", 1, parts.finding("fail", "", change_percent=SLOW))
    files = msgspec.structs.replace(verdict, revisions=Revisions(base="base", head="head"))
    rules = GateRules(gate=GateConfig(), policies=Policies(today=TODAY))
    assert waiver_offer(verdict, [compared()], rules) is not None
    assert waiver_offer(files, [compared()], rules) is None
