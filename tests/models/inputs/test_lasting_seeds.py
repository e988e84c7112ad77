from __future__ import annotations

from tunegate.models.inputs.calibration import calibration_seeds, error_seeds, lasting_order


def test_a_larger_budget_keeps_the_inputs_of_a_smaller_one() -> None:
    assert error_seeds(100)[:74] == error_seeds(74)


def test_no_input_that_tells_an_error_was_learned_from() -> None:
    assert len({*error_seeds(74), *calibration_seeds(32)}) == 74 + 32


def test_the_first_cases_are_from_all_of_a_list() -> None:
    order = lasting_order(100)
    assert sorted(order) == [*range(100)]
    assert min(order[:20]) < 20
    assert max(order[:20]) >= 80
