import math
import random

import msgspec
import numpy as np
import pytest

from tests.support.measured_cells import (
    make_build,
    make_builds,
    make_launches,
    make_measurement,
    make_probes,
    make_run,
)
from tests.support.simulated.simulated_launches import launch_of
from tunegate.artifacts import builds
from tunegate.artifacts.histogram import histogram
from tunegate.artifacts.measurements import Comparison, Launch
from tunegate.config import GateConfig
from tunegate.decide.assessment import Assessment, assess
from tunegate.decide.compare import compare
from tunegate.decide.gate import candidate_outcomes
from tunegate.decide.sequential import PLANNED, StoppingRule
from tunegate.decide.summarize import build_notes

RULE = StoppingRule(margin_percent=3.0, analyses=PLANNED, cells=1, rare=0.2)


def quiet(count: int, mean_effect: float = 0.0) -> list[Launch]:
    rng = random.Random(4)
    times = histogram([5.0] * 100)
    return [
        msgspec.structs.replace(
            launch,
            noise=0.001,
            mean_effect=mean_effect + rng.gauss(0.0, 0.003),
            base_times=times,
            head_times=times,
        )
        for launch in make_launches([rng.gauss(0.0, 0.003) for _ in range(count)])
    ]


def slow(effect: float, noise: float = 0.001) -> Launch:
    return msgspec.structs.replace(make_launches([effect])[0], noise=noise, mean_effect=0.0)


def assessed(
    launches: list[Launch], probes: list[Launch], starts: tuple[int, ...] = (16,)
) -> Assessment:
    found = assess(launches, probes, starts, RULE)
    assert found is not None
    return found


def test_a_pass_needs_the_median_the_mean_the_tail_and_clean_starts() -> None:
    assert assessed(quiet(4), quiet(12)).decision == "pass"
    assert assessed(quiet(4), quiet(11)).decision == "undecided"
    assert assessed(quiet(6, mean_effect=0.5), quiet(12)).decision == "fail"
    assert assessed(quiet(4), [*quiet(11), slow(0.3)]).decision == "undecided"


def test_a_start_whose_mean_is_slow_counts_though_its_median_is_not() -> None:
    odd = msgspec.structs.replace(quiet(1)[0], mean_effect=0.6)
    found = assessed(quiet(4), [*quiet(11), odd])
    assert (found.decision, found.excluded.slow) == ("undecided", 1)
    assert found.excluded.mean_percent == pytest.approx(15.0)


def test_a_slow_launch_that_is_noisy_too_is_evidence_and_no_noise() -> None:
    """Its noise leaves it out of the bounds: it must not be forgotten with it."""
    noisy = slow(0.4, noise=0.2)
    launches = [*quiet(4), noisy, noisy, *quiet(4)]
    found = assessed(launches, quiet(12))
    assert noisy not in found.launches
    assert found.median == "pass"
    assert (found.decision, found.excluded.slow) == ("undecided", 2)


def test_a_noisy_launch_in_which_the_base_is_slow_is_none_of_the_heads() -> None:
    launches = [*quiet(4), slow(-0.4, noise=0.2), *quiet(4)]
    assert assessed(launches, quiet(12)).decision == "pass"


@pytest.mark.parametrize("effect", [math.nan, math.inf])
def test_a_start_that_gave_no_number_excludes_nothing(effect: float) -> None:
    assert assessed(quiet(4), [*quiet(11), slow(effect)]).decision == "undecided"


def test_slow_starts_of_one_case_of_inputs_are_told_with_it() -> None:
    on_two, on_one = slow(0.3), quiet(12)
    cases = [msgspec.structs.replace(each, case=1) for each in on_one]
    probes = [*cases[1:], msgspec.structs.replace(on_two, case=2)]
    assert assessed(quiet(4), probes).excluded.slow_cases == (2,)
    assert assessed(quiet(4), [*cases[1:], on_two]).excluded.slow_cases == ()


def test_it_tells_what_was_excluded_and_by_how_many_starts() -> None:
    found = assessed(quiet(4), quiet(12)).excluded
    assert (found.asked_percent, found.starts, found.slow) == (20.0, 16, 0)
    assert found.share_percent is not None
    assert 18.0 < found.share_percent <= 20.0
    assert found.cut_off_percent == pytest.approx(11.8, abs=0.5)
    few = assess(quiet(4), [], (), msgspec.structs.replace(RULE, rare=0.0))
    assert few is not None
    assert few.decision == "pass"
    assert few.excluded.share_percent is not None
    assert few.excluded.share_percent > 50


# What the report says of builds that ship.

ALLOWED = (
    "models/m.onnx on cpu: off by 1.4% of the largest output, where 5% is allowed: ONNX Runtime "
    "is off from itself by 2.8%, by how it optimizes and rounds"
)

WRITTEN = (
    "models/m.onnx on cpu: off by 1.4% of the largest output from the model without optimizations; "
    "ONNX Runtime with its own is off by 15% here"
)


@pytest.mark.parametrize(
    ("noise", "as_written", "told"),
    [(None, False, []), (0.028, False, [ALLOWED]), (0.15, True, [WRITTEN])],
)
def test_numbers_that_may_differ_by_more_are_told(
    noise: float | None, as_written: bool, told: list[str]
) -> None:
    check = builds.NumericCheck(
        passed=True,
        max_absolute=0.01,
        max_relative=0.014,
        tolerance=0.05,
        reference_noise=noise,
        as_written=as_written,
    )
    head = msgspec.structs.replace(make_build("b"), check=check)
    run = make_run(make_measurement(), make_builds(make_build("a"), head))
    assert list(build_notes(run)) == told


def test_what_a_runtime_says_of_how_it_runs_is_told() -> None:
    head = msgspec.structs.replace(make_build("b"), notes=("3 of 9 nodes run on the CPU: Resize",))
    run = make_run(make_measurement(), make_builds(make_build("a"), head))
    told = "models/m.onnx on cpu (head): 3 of 9 nodes run on the CPU: Resize"
    assert list(build_notes(run)) == [told]


MEASURED = builds.RuntimeChoice(
    times=(
        builds.CandidateTime(candidate="onnxruntime", title="ONNX Runtime", ms=3.0),
        builds.CandidateTime(candidate="tvm", title="TVM", ms=2.0),
    ),
    refused=(builds.RefusedCandidate(candidate="third", title="Third", reason="no LSTM"),),
)


def outcomes(build: builds.Build | None) -> list[tuple[str, bool, float | None, str]]:
    return [(each.title, each.ships, each.ms, each.reason) for each in candidate_outcomes(build)]


def test_every_candidate_is_told_the_one_that_ships_first() -> None:
    assert outcomes(msgspec.structs.replace(make_build(), choice=MEASURED)) == [
        ("TVM", True, 2.0, ""),
        ("ONNX Runtime", False, 3.0, ""),
        ("Third", False, None, "no LSTM"),
    ]


def test_what_ships_has_the_error_of_its_own_build() -> None:
    remembered = builds.RuntimeChoice(
        times=(builds.CandidateTime(candidate="tvm", title="TVM", ms=2.0, has_unknown_error=True),)
    )
    error = builds.ErrorEstimate(what="max-error", center=0.8, low=0.7, high=1.1, samples=73)
    build = msgspec.structs.replace(make_build(), choice=remembered, error_estimate=(error,))
    (ours,) = candidate_outcomes(build)
    assert (ours.error, ours.has_unknown_error) == (error, False)


def test_what_a_budget_refuses_has_its_error() -> None:
    error = builds.ErrorEstimate(what="max-error", center=28.0, low=24.3, high=44.3, samples=64)
    refused = builds.RefusedCandidate(
        candidate="third", title="Third", reason="too far off", error=error
    )
    choice = msgspec.structs.replace(MEASURED, refused=(refused,))
    *_, last = candidate_outcomes(msgspec.structs.replace(make_build(), choice=choice))
    assert (last.reason, last.error) == ("too far off", error)


def test_of_a_model_that_nothing_runs_none_ships() -> None:
    refused = msgspec.structs.replace(MEASURED, times=())
    broken = msgspec.structs.replace(make_build(error="no LSTM"), choice=refused)
    assert outcomes(broken) == [("Third", False, None, "no LSTM")]


def test_the_only_candidate_ships() -> None:
    assert outcomes(make_build()) == [("TVM", True, None, "")]


def test_why_nothing_was_measured_stands_with_what_ships() -> None:
    choice = builds.RuntimeChoice(reason="not measured: no answer")
    assert outcomes(msgspec.structs.replace(make_build(), choice=choice)) == [
        ("TVM", True, None, "not measured: no answer")
    ]


@pytest.mark.parametrize("head", [None, builds.unbuilt("its file is missing")])
def test_without_a_candidate_there_is_nothing_to_tell(head: builds.Build | None) -> None:
    assert outcomes(head) == []


# A scheduler that gives the core to another program in turns.

TURN_MS = 3.0


def wall_ms(rng: np.random.Generator, cpu_ms: float, count: int) -> list[float]:
    """Inferences of so much work, one after the other; another program has every second turn."""
    times, at = [], rng.uniform(0, TURN_MS)
    for _ in range(count):
        work = cpu_ms * math.exp(rng.normal(0.0, 0.01))
        turns = int((at + work) // TURN_MS)
        at = (at + work) % TURN_MS
        times.append(work + turns * TURN_MS)
    return times


def launch(rng: np.random.Generator, change: float) -> Launch:
    work = (TURN_MS, TURN_MS * (1 + change))
    blocks = [[wall_ms(rng, each, 20) for each in work] for _ in range(12)]
    return launch_of(np.array(blocks))


def compared(change: float) -> Comparison:
    rng = np.random.default_rng(4)
    launches = tuple(launch(rng, change) for _ in range(9))
    measured = make_measurement([0.0, 0.0], probes=make_probes([0.0, 0.0], 15))
    measured = msgspec.structs.replace(measured, launches=launches)
    run = make_run(measured, make_builds(make_build("a"), make_build("b")))
    (found,) = compare(run, GateConfig())
    return found


@pytest.mark.parametrize("percent", [34, 20])
def test_the_interval_has_the_part_of_a_change_that_the_median_misses(percent: int) -> None:
    """The median of such inferences is half of it: most wait for one turn on either side."""
    found = compared(percent / 100)
    assert found.change_percent is not None
    assert found.change_percent.center < 0.75 * percent
    assert found.change_percent.low < percent
    assert found.change_percent.high == pytest.approx(percent, abs=1.0)
    assert found.decision == "fail"


def test_without_a_change_the_interval_stays_as_narrow_as_the_median_is() -> None:
    found = compared(0.0)
    assert found.change_percent is not None
    assert -1 < found.change_percent.low < found.change_percent.high < 1
    assert found.change_percent.center == pytest.approx(0.0, abs=0.2)
