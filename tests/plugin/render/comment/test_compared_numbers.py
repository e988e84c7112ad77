from __future__ import annotations

import pytest

from tests.support import report_parts as made
from tunegate.artifacts.measurements import Interval, TaskDifference
from tunegate.render.comment.compared_numbers import change_and_quotient, layer_total
from tunegate.render.operators import parts

CHANGE = Interval(low=34.8, center=65.0, high=83.4)


@pytest.mark.parametrize(
    ("head_ms", "said"),
    [
        (2.0 * 1.655, ""),
        (
            2.0 * 1.699,
            (
                "Change is the mean of paired launches, base and head in turn; dividing the two "
                "medians gives +69.9%."
            ),
        ),
    ],
)
def test_a_change_that_is_visibly_not_the_quotient_is_explained(head_ms: float, said: str) -> None:
    finding = made.finding("fail", "", base_ms=2.0, head_ms=head_ms, change_percent=CHANGE)
    assert change_and_quotient([finding]) == said


def test_what_has_no_base_is_not_explained() -> None:
    assert change_and_quotient([made.finding("new", "", base_ms=None, head_ms=1.0)]) == ""


def test_the_only_layer_has_no_share_and_the_model_has_its_own_difference() -> None:
    layer = TaskDifference(name="a", base_ms=1.0, head_ms=3.5, source="library")
    finding = made.finding("fail", "", base_ms=4.0, head_ms=6.75, differences=(layer,))
    assert layer_total(finding, parts(finding.differences)) == "The whole model: +2.750 ms."


def test_layers_that_lost_more_than_the_model_are_explained() -> None:
    layer = TaskDifference(name="a", base_ms=1.0, head_ms=5.0, source="library")
    finding = made.finding("fail", "", base_ms=4.0, head_ms=6.75, differences=(layer,))
    assert layer_total(finding, parts(finding.differences)) == (
        "The whole model: +2.750 ms; layers were timed apart from it, in a profile."
    )


def test_shares_are_of_the_sum_of_what_got_slower() -> None:
    layers = (
        TaskDifference(name="a", base_ms=1.0, head_ms=3.5, source="library"),
        TaskDifference(name="b", base_ms=1.0, head_ms=1.5, source="library"),
    )
    finding = made.finding("fail", "", base_ms=4.0, head_ms=6.75, differences=layers)
    assert layer_total(finding, parts(layers)) == (
        "Shares are of +3.000 ms, the sum of these layers. The whole model: +2.750 ms."
    )
