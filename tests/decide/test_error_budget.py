import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.report.budgeted import FLOAT32, make_error, make_side
from tests.support.measured_cells import make_build, make_builds, make_launches
from tunegate.artifacts.builds import Build, ErrorLimit, SampledErrors, ShippedErrors, SideError
from tunegate.artifacts.measurements import Clocks, Interval, Launch
from tunegate.config import AccuracyConfig, MetricCommandConfig
from tunegate.decide.error_budget import (
    OffPercent,
    estimate_errors,
    is_larger,
    moved_errors,
    outside,
    samples_needed,
    shipped_errors,
)
from tunegate.decide.gpu_clocks import MAX_DROPPED
from tunegate.decide.guards import disturbed_launches, noise_of, undisturbed_launches

BOTH = AccuracyConfig(max_error=1.0, min_agreement=95.0)


def judge(errors: SampledErrors, budget: AccuracyConfig = BOTH) -> str:
    return outside(estimate_errors(errors, budget))


def test_enough_inputs_with_small_errors_are_inside_the_budget() -> None:
    count = samples_needed(BOTH)
    assert judge(SampledErrors(relative=(0.009,) * count, agrees=(True,) * count)) == ""


def test_a_bound_outside_the_budget_is_told_with_its_interval() -> None:
    errors = SampledErrors(relative=(*(0.001,) * 73, 0.02), agrees=(True,) * 74)
    assert judge(errors) == (
        "has a max-error of 0.1%, interval 0.1% to 2% on 74 inputs; the budget is 1%"
    )


def test_a_few_inputs_show_nothing_however_small_their_error_is() -> None:
    few = SampledErrors(relative=(0.0,) * 58, agrees=(True,) * 58)
    assert "interval 0% to any on 58 inputs" in judge(few)
    assert "has a min-agreement of 100%" in judge(few, AccuracyConfig(min_agreement=95.0))


def test_saturated_outputs_are_named() -> None:
    assert judge(SampledErrors(saturated=("y",))) == (
        "has no output that tells its max-error: y cannot show one"
    )


def test_an_answer_that_is_always_the_same_has_nothing_to_agree_on() -> None:
    errors = SampledErrors(relative=(0.0,) * 74, one_place=("y",), inputs=74)
    assert judge(errors) == (
        "has no output that tells its min-agreement: whatever the input, the largest value of y "
        "is in one place. Give inputs with other answers as cases"
    )


def test_an_estimate_has_its_budget_and_the_output_it_comes_from() -> None:
    errors = SampledErrors(relative=(0.1,), agrees=(True,), largest_of="a", disagrees="b")
    told = [(each.what, each.limit, each.output) for each in estimate_errors(errors, BOTH)]
    assert told == [("max-error", 1.0, "a"), ("min-agreement", 95.0, "b")]


def test_inputs_that_tell_nothing_are_not_counted_and_said() -> None:
    errors = SampledErrors(relative=(0.0,) * 10, agrees=(True,) * 10, inputs=74)
    assert "interval 0% to any on 10 inputs (64 more tell nothing)" in judge(errors)


METRIC = AccuracyConfig(metric_command=MetricCommandConfig(run="wer", at_most=0.5))


def scored(*scores: float, telling: int = 74) -> SampledErrors:
    return SampledErrors(
        relative=(0.01,) * telling, telling=tuple(range(telling)), scores=scores, inputs=74
    )


def test_a_metric_is_bounded_by_the_largest_of_enough_scores() -> None:
    assert samples_needed(METRIC) == 74
    assert judge(scored(*(0.1,) * 73, 0.5), METRIC) == ""
    assert judge(scored(*(0.1,) * 73, 0.6), METRIC) == (
        "has a metric of 0.1, interval 0.1 to 0.6 on 74 inputs; the budget is 0.5"
    )


def test_scores_of_inputs_that_tell_nothing_do_not_count() -> None:
    assert "interval 0 to any on 20 inputs (54 more tell nothing)" in judge(
        scored(*(0.0,) * 74, telling=20), METRIC
    )
    assert judge(SampledErrors(saturated=("y",), scores=(0.0,) * 74), METRIC) == (
        "has no output that tells its metric: y cannot show one"
    )


def test_cases_that_were_not_kept_have_no_score() -> None:
    assert "to any on 30 inputs (44 more tell nothing)" in judge(scored(*(0.0,) * 30), METRIC)


def test_beside_a_metric_alone_stands_an_error_without_a_limit() -> None:
    shown = [(each.what, each.limit, each.unit) for each in estimate_errors(scored(0.0), METRIC)]
    assert shown == [("max-error", None, "%"), ("metric", 0.5, "")]


BUDGET = AccuracyConfig(max_error=50.0, min_agreement=50.0)
SAME = Interval(low=-1.0, center=0.1, high=1.2)
BOUND = st.floats(0, 100)
OFF = st.tuples(BOUND, BOUND).map(sorted).map(lambda pair: OffPercent(*pair))


def side_of(*relative: float, wrong: int = 0) -> SideError:
    agrees = (*(False,) * wrong, *(True,) * (len(relative) - wrong))
    errors = SampledErrors(relative=relative, agrees=agrees)
    return SideError(title="A", estimates=estimate_errors(errors, BUDGET))


def drawn(seed: int, factor: float) -> SideError:
    """Errors of 74 inputs whose logarithms are normal."""
    numbers = random.Random(seed)
    return side_of(*(factor * numbers.lognormvariate(-4, 0.5) for _ in range(74)))


@given(OFF, OFF)
def test_one_of_two_is_larger_or_none_where_they_touch(one: OffPercent, other: OffPercent) -> None:
    assert not (is_larger(one, other) and is_larger(other, one))
    assert not is_larger(one, one)
    touch = other.low <= (one.high or 0) and one.low <= (other.high or 0)
    assert not (touch and is_larger(one, other))


@given(OFF, OFF, BOUND)
def test_a_larger_one_stays_larger(before: OffPercent, after: OffPercent, more: float) -> None:
    grown = OffPercent(after.low + more, (after.high or 0) + more)
    assert is_larger(before, grown) or not is_larger(before, after)


def test_noise_alone_hardly_ever_moves_an_error() -> None:
    found = [moved_errors(drawn(2 * at, 1), drawn(2 * at + 1, 1), SAME) for at in range(300)]
    assert sum(map(bool, found)) <= 15


def test_an_error_that_is_four_times_as_large_is_found() -> None:
    found = [moved_errors(drawn(2 * at, 1), drawn(2 * at + 1, 5), SAME) for at in range(100)]
    assert sum(each == ("max-error",) for each in found) >= 90


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        (None, ("max-error",)),
        (SAME, ("max-error",)),
        (Interval(low=3.0, center=4.0, high=5.0), ("max-error",)),
        (Interval(low=-9.0, center=-8.0, high=-7.0), ()),
    ],
)
def test_only_a_clearly_faster_head_may_be_less_exact(
    change: Interval | None, moved: tuple[str, ...]
) -> None:
    before, after = side_of(*(0.01,) * 74), side_of(*(0.02,) * 74)
    assert moved_errors(before, after, change) == moved
    assert moved_errors(after, before, change) == ()


def test_float32_may_be_off_by_what_every_float32_build_may() -> None:
    inside, outside = side_of(*(0.0009,) * 74), side_of(*(0.0011,) * 74)
    assert moved_errors(FLOAT32, inside, SAME) == ()
    assert moved_errors(FLOAT32, outside, SAME) == ("max-error",)
    assert moved_errors(outside, FLOAT32, SAME) == ()


def test_fewer_agreements_are_a_larger_error() -> None:
    exact = (0.0,) * 149
    assert moved_errors(side_of(*exact), side_of(*exact, wrong=30), SAME) == ("min-agreement",)
    assert moved_errors(side_of(*exact), side_of(*exact, wrong=1), SAME) == ()


def test_without_a_bound_or_a_side_nothing_is_said() -> None:
    unbounded = make_side(make_error(0.8, 0.7, None))
    worse = make_side(make_error(9.0, 8.0, None))
    assert moved_errors(unbounded, worse, SAME) == ()
    assert moved_errors(None, worse, SAME) == ()
    assert moved_errors(worse, None, SAME) == ()


ERROR = make_error(0.8, 0.7, 1.1)
LIMIT = ErrorLimit(what="max-error", limit=2.0)


def budgeted(key: str, *, error: str | None = None, is_exact: bool = True) -> Build:
    estimates = () if is_exact else (ERROR,)
    return replace(make_build(key, error=error), limits=(LIMIT,), error_estimate=estimates)


def test_a_model_without_a_budget_has_no_error_to_tell() -> None:
    assert shipped_errors(None) is None
    assert shipped_errors(make_builds(make_build("a"), make_build("b"))) is None


def test_both_sides_are_told_and_float32_has_no_estimate() -> None:
    found = shipped_errors(make_builds(budgeted("a"), budgeted("b", is_exact=False)))
    title = make_build("a").title
    assert found == ShippedErrors(
        base=SideError(title=title),
        head=SideError(title=title, estimates=(ERROR,)),
        moved=("max-error",),
        limits=(LIMIT,),
    )


def test_a_side_that_ships_nothing_has_no_error() -> None:
    found = shipped_errors(make_builds(budgeted("a", error="no LSTM"), budgeted("b")))
    assert found is not None
    assert (found.base, found.head) == (None, SideError(title=make_build("b").title))
    assert shipped_errors(make_builds(None, budgeted("b", error="no LSTM"))) is None


MARGIN = math.log(1.03)


def noisy(*noises: float) -> list[Launch]:
    pairs = zip(make_launches([0.0] * len(noises)), noises, strict=True)
    return [replace(launch, noise=noise) for launch, noise in pairs]


def with_dropped(dropped: int) -> Launch:
    (launch,) = noisy(0.001)
    clocks = Clocks(base_mhz=1500.0, head_mhz=1500.0, dropped=dropped, is_mediated=False)
    return replace(launch, clocks=clocks)


def test_a_launch_counts_or_is_left_out() -> None:
    launches = noisy(0.001, 0.002, 0.5, 0.001)
    assert undisturbed_launches(launches, MARGIN) == [launches[0], launches[1], launches[3]]
    assert disturbed_launches(launches, MARGIN) == [launches[2]]


def test_a_machine_that_is_always_noisy_keeps_its_launches() -> None:
    launches = noisy(0.2, 0.25, 0.3)
    assert undisturbed_launches(launches, MARGIN) == launches
    assert disturbed_launches(launches, MARGIN) == []


def test_a_launch_whose_clock_left_too_few_pairs_counts_as_infinitely_noisy() -> None:
    most = int(MAX_DROPPED * with_dropped(0).pairs)
    assert noise_of(with_dropped(most)) == 0.001
    assert noise_of(with_dropped(most + 1)) == math.inf
    launches = [*noisy(0.001, 0.001), with_dropped(most + 1)]
    assert disturbed_launches(launches, MARGIN) == launches[2:]
