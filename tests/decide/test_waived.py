from __future__ import annotations

import datetime

import msgspec
import pytest

from tests.decide.test_checks import SAME, SLOWER, found, verdict
from tests.support.measured_cells import make_measurement
from tests.support.waivers import TODAY, make_waiver
from tunegate.artifacts.verdicts import WAIVERS_FILE
from tunegate.config import GateConfig
from tunegate.review.gate_rules import Policies

TIP = "the tip of the branch that this merges into"


def test_a_waiver_lets_a_slowdown_below_its_ceiling_pass_and_says_why() -> None:
    judged = verdict(make_measurement(SLOWER), Policies(waivers=(make_waiver(),), today=TODAY))
    assert (judged.status, judged.exit_code) == ("waived", 0)
    assert "waived up to +8% until 2026-07-31: a wider head" in judged.findings[0].reason
    assert judged.notes == ()


@pytest.mark.parametrize(
    ("waiver", "said"),
    [
        (
            make_waiver(ceiling_percent=4.0),
            "its waiver ends at +4%; it is in tunegate-waivers.yaml at the tip of",
        ),
        (make_waiver(expires=TODAY - datetime.timedelta(days=1)), "its waiver expired on"),
    ],
)
def test_a_waiver_that_does_not_cover_leaves_it_red(waiver: object, said: str) -> None:
    judged = verdict(make_measurement(SLOWER), Policies(waivers=(waiver,), today=TODAY))  # type: ignore[arg-type]
    assert (judged.status, judged.exit_code) == ("fail", 1)
    assert said in judged.findings[0].reason


def test_a_waiver_that_nothing_needs_is_named() -> None:
    judged = verdict(make_measurement(SAME), Policies(waivers=(make_waiver(),), today=TODAY))
    assert judged.status == "pass"
    assert "is not needed by this change" in judged.notes[0]
    assert "tunegate-waivers.yaml has it until" in judged.notes[0]


def test_what_is_open_says_nothing_of_its_waiver() -> None:
    measured = make_measurement(stopped="invalid", notes=("no answer",))
    assert verdict(measured, Policies(waivers=(make_waiver(),), today=TODAY)).notes == ()


@pytest.mark.parametrize(
    ("policies", "source", "said"),
    [
        (
            Policies(waivers=(make_waiver(),), today=TODAY),
            "base",
            f"in {WAIVERS_FILE} at {TIP}: a change of it counts once it is there",
        ),
        (
            Policies(waivers=(make_waiver(),), today=TODAY),
            "head",
            "in tunegate-waivers.yaml of this branch",
        ),
        (
            Policies(waivers=(make_waiver(),), signed_waivers=(make_waiver(),), today=TODAY),
            "base",
            "in a commit of this change, whose Tunegate-Waiver may be written anew",
        ),
    ],
)
def test_what_is_waived_says_where_its_waiver_is(
    policies: Policies, source: str, said: str
) -> None:
    gate = msgspec.structs.replace(GateConfig(), waivers_from=source)
    (finding,) = verdict(make_measurement(SLOWER), policies, gate).findings
    assert finding.remarks.endswith(f"the waiver is {said}")


def test_a_waiver_is_for_slowdowns_only() -> None:
    measured = make_measurement(stopped="invalid", notes=("no answer",))
    judged = verdict(measured, Policies(waivers=(make_waiver(),), today=TODAY))
    assert judged.status == "invalid-env"


def test_a_waiver_that_is_not_merged_waives_nothing_and_says_what_to_do() -> None:
    pending = Policies(pending_waivers=(make_waiver(),), today=TODAY)
    finding = found(make_measurement(SLOWER), pending)
    assert finding.status == "fail"
    assert "merge the waiver first" in finding.reason
    signed = make_waiver(ceiling_percent=90.0)
    both = Policies(pending_waivers=(make_waiver(), signed), signed_waivers=(signed,), today=TODAY)
    assert "merge the waiver first" in found(make_measurement(SLOWER), both).reason
    alone = Policies(pending_waivers=(signed,), signed_waivers=(signed,), today=TODAY)
    assert "gate.waiver-trailers: true" in found(make_measurement(SLOWER), alone).reason
    too_low = Policies(pending_waivers=(make_waiver(ceiling_percent=0.1),), today=TODAY)
    assert "merge the waiver" not in found(make_measurement(SLOWER), too_low).reason
