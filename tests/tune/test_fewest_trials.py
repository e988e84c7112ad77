from __future__ import annotations

import msgspec

from tests.tune.test_next_task import state
from tunegate.tune.next_task import DEFAULT_POLICY, Choice, RemainingBudget, fewest_trials

LEFT = RemainingBudget(trials=None, seconds=None)
FRESH, ONE, TWO = state(1.0), state(1.0, 0.5), state(9.0, 0.5, 0.4)


def test_the_task_with_the_fewest_trials_is_next_whatever_it_promises() -> None:
    assert fewest_trials((TWO, ONE, FRESH), LEFT) == Choice(2, DEFAULT_POLICY.batch)
    assert fewest_trials((TWO, ONE), LEFT) == Choice(1, DEFAULT_POLICY.batch)


def test_a_batch_is_no_larger_than_what_is_left() -> None:
    assert fewest_trials((FRESH,), RemainingBudget(trials=3, seconds=9.0)) == Choice(0, 3)


def test_nobody_is_next_without_a_budget_or_a_task_that_is_free() -> None:
    busy = msgspec.structs.replace(FRESH, is_searching=True)
    waiting = msgspec.structs.replace(FRESH, in_flight=DEFAULT_POLICY.batch)
    done = msgspec.structs.replace(FRESH, exhausted=True)
    assert fewest_trials((FRESH,), RemainingBudget(trials=0, seconds=None)) is None
    assert fewest_trials((FRESH,), RemainingBudget(trials=None, seconds=0.0)) is None
    assert fewest_trials((busy, waiting, done), LEFT) is None
