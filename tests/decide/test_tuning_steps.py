from __future__ import annotations

import pytest

from tests.support.reports import make_report
from tunegate.decide.advice import limit_key, tuning_steps


@pytest.mark.parametrize("is_asked", [True, False])
def test_what_another_step_asks_for_is_not_asked_again(is_asked: bool) -> None:
    report = make_report("budget-spent")
    steps = list(tuning_steps(report.outcomes, report.plan, frozenset(), is_asked=is_asked))
    said = (
        "Tuning reached its cap with 2 of 10 tasks unfinished: to finish raise budget.usd, or run "
        "again: another run of this change goes on from the cache. Once it is merged, tunegate "
        "warm does them."
    )
    assert [step.text for step in steps] == ([] if is_asked else [said])


def test_the_cap_that_ended_tuning_is_the_one_to_raise() -> None:
    assert limit_key(make_report("budget-spent").outcomes) == "budget.usd"
    assert limit_key(()) == "budget.minutes"
