import datetime
import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.decide.test_gate import A_BIT_SLOWER, SAME, found, verdict
from tests.support.measured_cells import (
    MODEL,
    make_build,
    make_builds,
    make_changes,
    make_launches,
    make_measurement,
    make_run,
    make_version,
)
from tests.support.waivers import TODAY, make_waiver, slowed
from tunegate.artifacts.builds import Cell
from tunegate.artifacts.changes import Revisions
from tunegate.artifacts.histogram import histogram
from tunegate.artifacts.measurements import CellMeasurement, Interval, Stalls
from tunegate.artifacts.verdicts import WAIVERS_FILE, Verdict, WaiverOffer
from tunegate.config import GateConfig, ObjectiveConfig
from tunegate.decide.compare import compare
from tunegate.decide.waiving import Slowdown, is_enough, notes, waiver_offer, waiver_state
from tunegate.review.gate_rules import GateRules, Policies

CELL = Cell(model="models/m.onnx", target="cpu")
DAY = datetime.timedelta(days=1)


def change(high: float) -> tuple[Slowdown, ...]:
    return slowed(Interval(low=high - 2, center=high - 1, high=high))


@pytest.mark.parametrize(
    ("high", "found"), [(7.9, "covers"), (8.0, "exceeded"), (30.0, "exceeded")]
)
def test_the_whole_interval_must_lie_below_the_ceiling(high: float, found: str) -> None:
    assert waiver_state(make_waiver(ceiling_percent=8.0), change(high), TODAY) == found


def test_the_last_day_still_counts_and_the_next_does_not() -> None:
    assert waiver_state(make_waiver(expires=TODAY), change(5.0), TODAY) == "covers"
    assert waiver_state(make_waiver(expires=TODAY - DAY), change(5.0), TODAY) == "expired"


def test_nothing_is_waived_without_a_waiver_or_without_an_interval() -> None:
    assert waiver_state(None, change(5.0), TODAY) == "none"
    assert waiver_state(make_waiver(), (), TODAY) == "exceeded"


def test_expired_and_needless_waivers_are_named() -> None:
    expired = make_waiver(model="models/a.onnx", expires=TODAY - DAY)
    needless, needed = make_waiver(), make_waiver(target="gpu")
    unmeasured = make_waiver(model="models/b.onnx")
    used = {CELL: False, Cell(model="models/m.onnx", target="gpu"): True}
    first, second = notes([expired, needless, needed, unmeasured], used, TODAY)
    assert "models/a.onnx on cpu expired" in first
    assert "models/m.onnx on cpu is not needed by this change" in second


def test_a_waiver_of_a_model_is_needed_where_one_of_its_profiles_needs_it() -> None:
    short, long = (replace(CELL, model=f"{CELL.model}@{p}") for p in ("a", "b"))
    assert [*notes([make_waiver()], {short: False, long: True}, TODAY)] == []
    (told,) = notes([make_waiver()], {short: False, long: False}, TODAY)
    assert told.startswith("the waiver of models/m.onnx on cpu is not needed")
    own = make_waiver(model=long.model)
    (told,) = notes([make_waiver(), own], {short: False, long: True}, TODAY)
    assert told.startswith("the waiver of models/m.onnx on cpu is not needed")


@given(st.floats(-5, 50), st.floats(0.1, 50), st.integers(-100, 90))
def test_nothing_over_the_ceiling_or_after_the_day_is_ever_covered(
    high: float, ceiling: float, days: int
) -> None:
    waiver = make_waiver(ceiling_percent=ceiling, expires=TODAY + days * DAY)
    if waiver_state(waiver, change(high), TODAY) == "covers":
        assert high < ceiling
        assert days >= 0


TIP = "the tip of the branch that this merges into"


@pytest.mark.parametrize(
    ("was", "remark"),
    [(MODEL, ""), ("models/old.onnx", "as models/old.onnx: is the waiver meant for it")],
)
def test_a_waiver_lets_slowdowns_below_its_ceiling_pass_and_says_why(was: str, remark: str) -> None:
    """A waiver of a model that is gone may be found for one that gets its name."""
    (change,) = make_changes().models
    base = replace(make_version("b"), path=was)
    changes = replace(make_changes(), models=(replace(change, base=base),))
    policies = Policies(waivers=(make_waiver(),), today=TODAY)
    judged = verdict(make_measurement(A_BIT_SLOWER), policies, changes=changes)
    assert (judged.status, judged.exit_code) == ("waived", 0)
    assert "waived up to +8% until 2026-07-31: a wider head" in judged.findings[0].reason
    assert judged.findings[0].reason.endswith(remark)
    assert judged.notes == ()


@pytest.mark.parametrize(
    ("waiver", "said"),
    [
        (
            make_waiver(ceiling_percent=4.0),
            "its waiver allows up to +4%; it is in tunegate-waivers.yaml at the tip of",
        ),
        (make_waiver(expires=TODAY - DAY), "its waiver expired on"),
    ],
)
def test_a_waiver_that_does_not_cover_leaves_it_red(waiver: object, said: str) -> None:
    judged = verdict(make_measurement(A_BIT_SLOWER), Policies(waivers=(waiver,), today=TODAY))  # type: ignore[arg-type]
    assert (judged.status, judged.exit_code) == ("fail", 1)
    assert said in judged.findings[0].reason


def test_a_waiver_that_nothing_needs_is_named() -> None:
    judged = verdict(make_measurement(SAME), Policies(waivers=(make_waiver(),), today=TODAY))
    assert judged.status == "pass"
    assert "is not needed by this change" in judged.notes[0]
    assert "tunegate-waivers.yaml has it until" in judged.notes[0]


@pytest.mark.parametrize(
    ("policies", "source", "said"),
    [
        (
            Policies(waivers=(make_waiver(),), today=TODAY),
            "base",
            f"in {WAIVERS_FILE} at {TIP}: a change counts once it is merged there",
        ),
        (
            Policies(waivers=(make_waiver(),), today=TODAY),
            "head",
            "in tunegate-waivers.yaml of this branch",
        ),
        (
            Policies(waivers=(make_waiver(),), signed_waivers=(make_waiver(),), today=TODAY),
            "base",
            "in a commit of this change, whose Tunegate-Waiver line can be changed",
        ),
    ],
)
def test_what_is_waived_names_its_waivers_place(policies: Policies, source: str, said: str) -> None:
    gate = replace(GateConfig(), waivers_from=source)
    (finding,) = verdict(make_measurement(A_BIT_SLOWER), policies, gate).findings
    assert finding.remarks.endswith(f"the waiver is {said}")


def test_a_waiver_is_for_slowdowns_only_and_what_is_open_says_nothing_of_it() -> None:
    measured = make_measurement(stopped="invalid", notes=("no answer",))
    judged = verdict(measured, Policies(waivers=(make_waiver(),), today=TODAY))
    assert (judged.status, judged.notes) == ("invalid-env", ())


def test_a_waiver_that_is_not_merged_waives_nothing_and_says_what_to_do() -> None:
    pending = Policies(pending_waivers=(make_waiver(),), today=TODAY)
    finding = found(make_measurement(A_BIT_SLOWER), pending)
    assert finding.status == "fail"
    assert "merge the waiver first" in finding.reason
    signed = make_waiver(ceiling_percent=90.0)
    both = Policies(pending_waivers=(make_waiver(), signed), signed_waivers=(signed,), today=TODAY)
    assert "merge the waiver first" in found(make_measurement(A_BIT_SLOWER), both).reason
    alone = Policies(pending_waivers=(signed,), signed_waivers=(signed,), today=TODAY)
    assert "gate.waiver-trailers: true" in found(make_measurement(A_BIT_SLOWER), alone).reason
    too_low = Policies(pending_waivers=(make_waiver(ceiling_percent=0.1),), today=TODAY)
    assert "merge the waiver" not in found(make_measurement(A_BIT_SLOWER), too_low).reason


def slow_inside(
    mean_percents: tuple[float, ...], effects: tuple[float, ...] = SAME
) -> CellMeasurement:
    """A head whose mean is slower by so much in each launch, beside these medians."""
    measured = make_measurement(effects)
    slow = [1.0] * 85 + [7.0] * 15
    launches = tuple(
        replace(
            launch,
            mean_effect=math.log1p(percent / 100),
            base_times=histogram([1.0] * 100),
            head_times=histogram(slow if percent > 50 else [1.0] * 100),
        )
        for launch, percent in zip(measured.launches, mean_percents, strict=True)
    )
    usual = math.log1p(statistics.median(mean_percents) / 100)
    probes = tuple(replace(each, mean_effect=usual) for each in measured.probes)
    return replace(measured, launches=launches, probes=probes)


SLOW_MEAN = slow_inside((92.0, 88.0, 96.0, 93.0))


def waived(measured: CellMeasurement, ceiling_percent: float) -> Verdict:
    waiver = make_waiver(ceiling_percent=ceiling_percent)
    return verdict(measured, Policies(waivers=(waiver,), today=TODAY))


def test_a_waiver_bounds_the_mean_as_well_as_the_median() -> None:
    judged = waived(SLOW_MEAN, 40.0)
    assert (judged.status, judged.exit_code) == ("fail", 1)
    assert "its waiver allows up to +40%, not the mean by +92% (+" in judged.findings[0].reason


def test_a_waiver_excludes_slow_starts_above_its_ceiling() -> None:
    """They are asked for as by a pass with the ceiling as margin: 16 starts, none of them slow."""
    seen = make_measurement(A_BIT_SLOWER)
    assert "fewer than 18% of launches are slow" in waived(seen, 8.0).findings[0].reason
    slow = (*seen.probes[1:], *make_launches([0.7]))
    for probes, said in (((), ""), (slow, "; 1 of 19 starts of the head was over +")):
        judged = waived(replace(seen, probes=probes), 8.0)
        assert (judged.status, judged.exit_code) == ("inconclusive", 3)
        unproven = "the waiver's ceiling is not proven: slow starts above it are not excluded"
        assert unproven + said in judged.findings[0].reason


@pytest.mark.parametrize(
    ("quartets", "status", "said"),
    [
        (9, "fail", "its waiver allows up to +8%, not the mean of all inferences by"),
        (2, "inconclusive", "is open; 36 stalls of 50x, where the base has 0; the waiver is in"),
    ],
)
def test_no_ceiling_bounds_stalls(quartets: int, status: str, said: str) -> None:
    slow = slow_inside((5.0, 6.0, 5.5, 6.5), A_BIT_SLOWER)
    of_head = Stalls(times=50.0, base=0, head=9, base_worse=0, head_worse=quartets, inferences=400)
    launches = tuple(
        replace(x, stalls=(of_head,), head_times=histogram([1.06] * 100)) for x in slow.launches
    )
    judged = waived(replace(slow, launches=launches), 8.0)
    assert judged.status == status
    assert said in judged.findings[0].reason


def test_what_more_launches_leave_open_at_the_margin_is_waived_by_a_pass_at_the_ceiling() -> None:
    scattered = make_measurement((0.06, 0.02, 0.05, 0.03))
    assert verdict(scattered, Policies()).status == "inconclusive"
    assert waived(scattered, 12.0).status == "waived"
    assert waived(replace(scattered, probes=()), 12.0).status == "inconclusive"


def test_a_waiver_bounds_every_percentile_that_failed() -> None:
    """The mean is below 130%; p90 and p99 are seven times what they were."""
    judged = waived(SLOW_MEAN, 130.0)
    assert judged.status == "fail"
    assert ", not p90 by +" in judged.findings[0].reason
    assert waived(SLOW_MEAN, 700.0).status == "waived"


def test_a_mean_that_is_open_above_the_ceiling_leaves_it_undecided() -> None:
    """The median alone is proven to be slower, and the waiver is for that."""
    judged = waived(slow_inside((1.0, 2.0, 45.0, 3.0), A_BIT_SLOWER), 8.0)
    assert (judged.status, judged.exit_code) == ("inconclusive", 3)
    assert "but not decided below that: the mean by +" in judged.findings[0].reason
    assert waived(slow_inside((5.0, 6.0, 5.5, 6.5), A_BIT_SLOWER), 8.0).status == "waived"


def offer_for(measured: CellMeasurement, policies: Policies) -> tuple[WaiverOffer | None, bool]:
    """The offer, and whether nothing fails any more once it is merged."""
    rules = GateRules(gate=GateConfig(), policies=policies)
    run = make_run(measured, make_builds(make_build("a"), make_build("b")))
    commits = Revisions(base="a" * 40, head="b" * 40)
    judged = replace(verdict(measured, policies), revisions=commits)
    offer = waiver_offer(judged, compare(run, rules.gate), rules)
    if offer is None:
        return None, False
    return offer, is_enough(offer, rules, lambda changed: verdict(measured, changed.policies))


@pytest.mark.parametrize(
    "measured",
    [SLOW_MEAN, make_measurement(A_BIT_SLOWER), slow_inside((5.0, 6.0, 5.5, 6.5), A_BIT_SLOWER)],
)
def test_an_offered_waiver_holds(measured: CellMeasurement) -> None:
    offer, holds = offer_for(measured, Policies(today=TODAY))
    assert offer is not None
    assert holds
    assert verdict(measured, Policies(waivers=offer.waivers, today=TODAY)).status == "waived"


def test_no_waiver_holds_where_the_objective_fails_too() -> None:
    objectives = {MODEL: ObjectiveConfig(ms=2.0, percentile=90.0)}
    offer, holds = offer_for(SLOW_MEAN, Policies(objectives=objectives, today=TODAY))
    assert offer is not None
    assert not holds
    waivers = (make_waiver(ceiling_percent=900.0),)
    judged = verdict(SLOW_MEAN, Policies(waivers=waivers, objectives=objectives, today=TODAY))
    assert judged.status == "fail"


@pytest.mark.parametrize("target", ["gpu", "cpu-2"])
def test_a_waiver_of_another_target_or_model_is_none(target: str) -> None:
    others = (make_waiver(target=target), make_waiver(model="models/n.onnx"))
    found = verdict(make_measurement(A_BIT_SLOWER), Policies(waivers=others, today=TODAY)).status
    assert found == "fail"


def test_the_waiver_of_a_commit_takes_nothing_from_the_bounds_of_the_mean() -> None:
    signed = make_waiver(ceiling_percent=40.0)
    policies = Policies(waivers=(signed,), signed_waivers=(signed,), today=TODAY)
    assert verdict(SLOW_MEAN, policies).status == "fail"
    pending = Policies(pending_waivers=(signed,), today=TODAY)
    assert "merge the waiver first" not in found(SLOW_MEAN, pending).reason
