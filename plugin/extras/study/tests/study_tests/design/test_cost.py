from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tunegate_study.design.cost import cells_paid, estimated_seconds, trials_of
from tunegate_study.studies import CellSetting

COMPILERS = {"tvm"}


def cells(count: int, tuning: str = "64", runtime: str = "tvm") -> list[CellSetting]:
    return [
        {"model": str(n), "runtime": runtime, "precision": "float32", "tuning": tuning}
        for n in range(count)
    ]


def test_trials_are_paid_once_for_all_that_are_built_with_them() -> None:
    alone = estimated_seconds(cells(1), COMPILERS, 5)
    (cell,) = cells(1)
    both = estimated_seconds([cell, {**cell, "precision": "bfloat16"}], COMPILERS, 5)
    assert both < 2 * alone
    assert estimated_seconds(cells(1, runtime="onnxruntime"), COMPILERS, 5) < alone / 2


@given(st.integers(1, 40), st.floats(1, 10_000))
def test_a_budget_never_pays_more_than_it_has(count: int, seconds: float) -> None:
    paid = cells_paid(cells(count), COMPILERS, 5, seconds)
    assert 0 <= paid <= count
    assert estimated_seconds(cells(count), COMPILERS, 5) * paid / count <= seconds + 1e-6


def test_words_have_no_trials() -> None:
    assert [trials_of(each) for each in cells(1, "untuned") + cells(1, "64")] == [0, 64]
