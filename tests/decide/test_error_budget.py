from __future__ import annotations

from tunegate.artifacts.builds import SampledErrors
from tunegate.config import AccuracyConfig, MetricCommandConfig
from tunegate.decide.error_budget import estimated, outside, samples_needed

BOTH = AccuracyConfig(max_error=1.0, min_agreement=95.0)


def told(errors: SampledErrors, budget: AccuracyConfig = BOTH) -> str:
    return outside(estimated(errors, budget))


def test_enough_inputs_with_small_errors_are_inside_the_budget() -> None:
    count = samples_needed(BOTH)
    assert told(SampledErrors(relative=(0.009,) * count, agrees=(True,) * count)) == ""


def test_a_bound_outside_the_budget_is_told_with_its_interval() -> None:
    errors = SampledErrors(relative=(*(0.001,) * 73, 0.02), agrees=(True,) * 74)
    assert told(errors) == (
        "has a max-error of 0.1%, interval 0.1% to 2% on 74 inputs; the budget is 1%"
    )


def test_a_few_inputs_show_nothing_however_small_their_error_is() -> None:
    few = SampledErrors(relative=(0.0,) * 58, agrees=(True,) * 58)
    assert "interval 0% to any on 58 inputs" in told(few)
    only = AccuracyConfig(min_agreement=95.0)
    assert "has a min-agreement of 100%" in told(few, only)


def test_saturated_outputs_are_named() -> None:
    assert told(SampledErrors(saturated=("y",))) == (
        "has no output that tells its max-error: y cannot show one"
    )


def test_an_answer_that_is_always_the_same_has_nothing_to_agree_on() -> None:
    errors = SampledErrors(relative=(0.0,) * 74, one_place=("y",), inputs=74)
    assert told(errors) == (
        "has no output that tells its min-agreement: whatever the input, the largest value of y "
        "is in one place. Give inputs with other answers as cases"
    )


def test_an_estimate_has_its_budget_and_the_output_it_comes_from() -> None:
    errors = SampledErrors(relative=(0.1,), agrees=(True,), largest_of="a", disagrees="b")
    told = [(each.what, each.limit, each.output) for each in estimated(errors, BOTH)]
    assert told == [("max-error", 1.0, "a"), ("min-agreement", 95.0, "b")]


def test_inputs_that_tell_nothing_are_not_counted_and_said() -> None:
    errors = SampledErrors(relative=(0.0,) * 10, agrees=(True,) * 10, inputs=74)
    assert "interval 0% to any on 10 inputs (64 more tell nothing)" in told(errors)


METRIC = AccuracyConfig(metric_command=MetricCommandConfig(run="wer", at_most=0.5))


def scored(*scores: float, telling: int = 74) -> SampledErrors:
    return SampledErrors(
        relative=(0.01,) * telling, telling=tuple(range(telling)), scores=scores, inputs=74
    )


def test_a_metric_is_bounded_by_the_largest_of_enough_scores() -> None:
    assert samples_needed(METRIC) == 74
    assert told(scored(*(0.1,) * 73, 0.5), METRIC) == ""
    assert told(scored(*(0.1,) * 73, 0.6), METRIC) == (
        "has a metric of 0.1, interval 0.1 to 0.6 on 74 inputs; the budget is 0.5"
    )


def test_scores_of_inputs_that_tell_nothing_do_not_count() -> None:
    assert "interval 0 to any on 20 inputs (54 more tell nothing)" in told(
        scored(*(0.0,) * 74, telling=20), METRIC
    )
    assert told(SampledErrors(saturated=("y",), scores=(0.0,) * 74), METRIC) == (
        "has no output that tells its metric: y cannot show one"
    )


def test_cases_that_were_not_kept_have_no_score() -> None:
    assert "to any on 30 inputs (44 more tell nothing)" in told(scored(*(0.0,) * 30), METRIC)


def test_beside_a_metric_alone_stands_an_error_without_a_limit() -> None:
    shown = [(each.what, each.limit, each.unit) for each in estimated(scored(0.0), METRIC)]
    assert shown == [("max-error", None, "%"), ("metric", 0.5, "")]
