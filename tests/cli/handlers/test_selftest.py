from __future__ import annotations

import pytest

from tunegate.cli.handlers.selftest import advice
from tunegate.measure.selftest import Injected, Qualification, TrialOutcome


def made(margin: float | None, *, wrong: bool = False) -> Qualification:
    outcome: TrialOutcome = "pass" if wrong else "fail"
    injected = Injected(
        percent=30.0, outcome=outcome, low=29.0, center=30.0, high=31.0, launches=4, seconds=8.0
    )
    return Qualification(
        aa_launches=40,
        spread_percent=0.5,
        resolves_percent=0.9,
        margin_percent=margin,
        gate_seconds=240.0,
        launch_seconds=2.0,
        injected=(injected,),
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (made(1.0), "gate.margin-percent could be 1 instead of 3"),
        (made(3.0), "decides its margin of 3% in 240 s"),
        (made(5.0), "set gate.margin-percent: 5, raise gate.seconds, or use a quieter one"),
        (made(None), "cannot decide even 20%"),
        (made(3.0, wrong=True), "do not gate on this machine"),
    ],
)
def test_the_advice_says_what_to_do(found: Qualification, said: str) -> None:
    assert said in advice(found, 3.0)
