from __future__ import annotations

from tests.support import report_parts as made
from tunegate.artifacts.measurements import Interval, TaskDifference
from tunegate.report.comment import change_said, layer_total
from tunegate.report.operators import parts

CHANGE = Interval(low=34.8, center=65.0, high=83.4)


def test_the_change_beside_two_medians_is_explained_with_its_bounds() -> None:
    finding = made.finding("fail", "", base_ms=2.0, head_ms=3.3, change_percent=CHANGE)
    assert change_said([finding]) == (
        "Change compares paired launches, so it is not Head / Base. Below it are its bounds: the "
        "lower one with 99.2% confidence, the upper one with 95%."
    )
    assert change_said([finding], with_bounds=False) == (
        "Change compares paired launches, so it is not Head / Base."
    )


def test_what_has_no_base_is_not_explained() -> None:
    assert change_said([made.finding("new", "", base_ms=None, head_ms=1.0)]) == ""


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
