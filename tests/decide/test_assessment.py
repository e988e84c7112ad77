import math
import random
import re

import numpy as np
import pytest
from msgspec.structs import replace

from tests.support import report_parts as parts
from tests.support.measured_cells import (
    make_build,
    make_builds,
    make_launches,
    make_measurement,
    make_probes,
    make_run,
)
from tests.support.present import present
from tests.support.simulated.simulated_launches import launch_of
from tunegate.artifacts import builds
from tunegate.artifacts.histogram import histogram
from tunegate.artifacts.measurements import Comparison, Launch
from tunegate.artifacts.verdicts import EXIT_CODES, Status, Verdict, VerdictOrigin
from tunegate.config import GateConfig
from tunegate.decide.assessment import Assessment, Next, after_pass, assess
from tunegate.decide.compare import compare
from tunegate.decide.gate import candidate_outcomes, confirm
from tunegate.decide.sequential import PLANNED, StoppingRule
from tunegate.decide.summarize import build_notes
from tunegate.errors import USAGE, ArtifactError

RULE = StoppingRule(margin_percent=3.0, analyses=PLANNED, cells=1, rare=0.2)


def quiet(count: int, mean_effect: float = 0.0) -> list[Launch]:
    rng = random.Random(4)
    times = histogram([5.0] * 100)
    return [
        replace(
            launch,
            noise=0.001,
            mean_effect=mean_effect + rng.gauss(0.0, 0.003),
            base_times=times,
            head_times=times,
        )
        for launch in make_launches([rng.gauss(0.0, 0.003) for _ in range(count)])
    ]


def slow(effect: float, noise: float = 0.001) -> Launch:
    return replace(make_launches([effect])[0], noise=noise, mean_effect=0.0)


def assessed(
    launches: list[Launch], probes: list[Launch], starts: tuple[int, ...] = (16,)
) -> Assessment:
    return present(assess(launches, probes, starts, RULE))


def test_a_pass_needs_the_median_the_mean_the_tail_and_clean_starts() -> None:
    assert assessed(quiet(4), quiet(12)).decision == "pass"
    assert assessed(quiet(4), quiet(11)).decision == "undecided"
    assert assessed(quiet(6, mean_effect=0.5), quiet(12)).decision == "fail"
    assert assessed(quiet(4), [*quiet(11), slow(0.3)]).decision == "undecided"


def test_a_start_whose_mean_is_slow_counts_though_its_median_is_not() -> None:
    odd = replace(quiet(1)[0], mean_effect=0.6)
    found = assessed(quiet(4), [*quiet(11), odd])
    assert (found.decision, found.excluded.slow) == ("undecided", 1)
    assert found.excluded.mean_percent == pytest.approx(15.0)


def test_a_slow_launch_that_is_noisy_too_is_evidence_and_no_noise() -> None:
    """Its noise leaves it out of the bounds: it must not be forgotten with it."""
    noisy = slow(0.4, noise=0.2)
    found = assessed([*quiet(4), noisy, noisy, *quiet(4)], quiet(12))
    assert noisy not in found.launches
    assert found.median == "pass"
    assert (found.decision, found.excluded.slow) == ("undecided", 2)


def test_a_noisy_launch_in_which_the_base_is_slow_is_none_of_the_heads() -> None:
    assert assessed([*quiet(4), slow(-0.4, noise=0.2), *quiet(4)], quiet(12)).decision == "pass"


@pytest.mark.parametrize("effect", [math.nan, math.inf])
def test_a_start_that_gave_no_number_excludes_nothing(effect: float) -> None:
    assert assessed(quiet(4), [*quiet(11), slow(effect)]).decision == "undecided"


def test_slow_starts_of_one_case_of_inputs_are_told_with_it() -> None:
    on_two, on_one = slow(0.3), quiet(12)
    cases = [replace(each, case=1) for each in on_one]
    probes = [*cases[1:], replace(on_two, case=2)]
    assert assessed(quiet(4), probes).excluded.slow_cases == (2,)
    assert assessed(quiet(4), [*cases[1:], on_two]).excluded.slow_cases == ()


def test_it_tells_what_was_excluded_and_by_how_many_starts() -> None:
    found = assessed(quiet(4), quiet(12)).excluded
    assert (found.asked_percent, found.starts, found.slow) == (20.0, 16, 0)
    assert 18.0 < present(found.share_percent) <= 20.0
    assert found.cut_off_percent == pytest.approx(11.8, abs=0.5)
    few = present(assess(quiet(4), [], (), replace(RULE, rare=0.0)))
    assert few.decision == "pass"
    assert present(few.excluded.share_percent) > 50


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
    head = replace(make_build("b"), check=check)
    run = make_run(make_measurement(), make_builds(make_build("a"), head))
    assert list(build_notes(run)) == told


def test_what_a_runtime_says_of_how_it_runs_is_told() -> None:
    head = replace(make_build("b"), notes=("3 of 9 nodes run on the CPU: Resize",))
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
    assert outcomes(replace(make_build(), choice=MEASURED)) == [
        ("TVM", True, 2.0, ""),
        ("ONNX Runtime", False, 3.0, ""),
        ("Third", False, None, "no LSTM"),
    ]


def test_what_ships_has_the_error_of_its_own_build() -> None:
    remembered = builds.RuntimeChoice(
        times=(builds.CandidateTime(candidate="tvm", title="TVM", ms=2.0, has_unknown_error=True),)
    )
    error = builds.ErrorEstimate(what="max-error", center=0.8, low=0.7, high=1.1, samples=73)
    build = replace(make_build(), choice=remembered, error_estimate=(error,))
    (ours,) = candidate_outcomes(build)
    assert (ours.error, ours.has_unknown_error) == (error, False)


def test_what_a_budget_refuses_has_its_error() -> None:
    error = builds.ErrorEstimate(what="max-error", center=28.0, low=24.3, high=44.3, samples=64)
    refused = builds.RefusedCandidate(
        candidate="third", title="Third", reason="too far off", error=error
    )
    choice = replace(MEASURED, refused=(refused,))
    *_, last = candidate_outcomes(replace(make_build(), choice=choice))
    assert (last.reason, last.error) == ("too far off", error)


def test_of_a_model_that_nothing_runs_none_ships() -> None:
    refused = replace(MEASURED, times=())
    broken = replace(make_build(error="no LSTM"), choice=refused)
    assert outcomes(broken) == [("Third", False, None, "no LSTM")]


def test_the_only_candidate_ships() -> None:
    assert outcomes(make_build()) == [("TVM", True, None, "")]


def test_why_nothing_was_measured_stands_with_what_ships() -> None:
    choice = builds.RuntimeChoice(reason="not measured: no answer")
    assert outcomes(replace(make_build(), choice=choice)) == [
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
    return launch_of(np.array([[wall_ms(rng, each, 20) for each in work] for _ in range(12)]))


def compared(change: float) -> Comparison:
    rng = np.random.default_rng(4)
    launches = tuple(launch(rng, change) for _ in range(9))
    measured = make_measurement([0.0, 0.0], probes=make_probes([0.0, 0.0], 15))
    measured = replace(measured, launches=launches)
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


# What is judged after a pass, and again on a second machine.


def quiet_launches(count: int) -> tuple[Launch, ...]:
    rng = random.Random(4)
    launches = make_launches([rng.gauss(0.0, 0.003) for _ in range(count)])
    return tuple(replace(launch, noise=0.001) for launch in launches)


def following(
    launches: tuple[Launch, ...],
    probes: tuple[Launch, ...] = (),
    starts: tuple[int, ...] = (),
    rule: StoppingRule = RULE,
) -> Next:
    return after_pass(present(assess(launches, probes, starts, rule)), starts, len(launches), rule)


def test_starts_that_are_missing_and_asked_for_are_looked_for_in_probes() -> None:
    assert following(quiet_launches(4)) == Next(probes=12, starts=(16,))
    assert following(quiet_launches(9)) == Next(probes=7, starts=(16,))
    assert following(quiet_launches(19)) == Next(starts=(19,))
    assert following(quiet_launches(4), quiet_launches(12), (16,)) == Next(starts=(16,))
    assert following(quiet_launches(4), rule=replace(RULE, rare=0.0)) == Next()


def test_a_slow_start_is_answered_with_launches_of_both_sides() -> None:
    found = following(quiet_launches(4), (*quiet_launches(11), *make_launches([0.3])), (16,))
    assert found.launch
    assert found.starts[0] == 16
    assert found.starts[1] > 26


def test_what_no_launches_that_can_be_paid_for_would_exclude_is_over() -> None:
    few = replace(RULE, analyses=(4, 6))
    assert not following(
        quiet_launches(6), (*quiet_launches(11), *make_launches([0.3])), (16,), few
    ).launch


def test_what_may_be_a_slow_machine_has_launches_until_their_bounds_answer() -> None:
    slow = make_launches([0.3] * 4)
    assert following(quiet_launches(19), (*quiet_launches(8), *slow), (16, 16)).launch
    assert not following(quiet_launches(28), (*quiet_launches(8), *slow), (16, 16)).launch


def test_a_mode_that_the_launches_to_come_would_prove_is_measured_on() -> None:
    """No bounds that can be paid for answer a share so rare."""
    rarer = replace(RULE, rare=0.05)
    assert following(quiet_launches(13), make_launches([2.0] * 12), (16, 16), rarer).launch
    assert not following(
        quiet_launches(13), (*quiet_launches(8), *make_launches([0.7])), (16, 16), rarer
    ).launch


def test_a_mean_that_may_be_slower_is_measured_on_before_anything_else() -> None:
    times = histogram([1.0] * 50)
    doubtful = tuple(
        replace(x, mean_effect=0.08 + 0.03 * (n % 2), base_times=times, head_times=times)
        for n, x in enumerate(quiet_launches(6))
    )
    assert following(doubtful) == Next(launch=True)
    assert following(doubtful, rule=replace(RULE, analyses=(4, 6))) == Next()


def test_launches_go_on_until_energy_and_loading_are_decided_too() -> None:
    asked = replace(RULE, rare=0.0, energy_margin_percent=5.0)
    assert following(with_joules(quiet_launches(4), 0.05), rule=asked).launch
    assert following(with_joules(quiet_launches(4), 0.0), rule=asked) == Next()
    assert following(with_joules(quiet_launches(4), 0.5), rule=asked) == Next()
    assert following(quiet_launches(4), rule=asked) == Next()  # no counter would tell it any better
    asked = replace(RULE, rare=0.0, load_margin_percent=5.0)
    assert following(with_loads(quiet_launches(4), 1.05), rule=asked).launch
    assert following(with_loads(quiet_launches(4), 1.0), rule=asked) == Next()


def with_loads(launches: tuple[Launch, ...], more: float) -> tuple[Launch, ...]:
    return tuple(replace(each, load_ms=(1.0, more)) for each in launches)


def with_joules(launches: tuple[Launch, ...], effect: float) -> tuple[Launch, ...]:
    return tuple(
        replace(launch, base_joules=1.0, head_joules=1.0 + effect, energy_source="rapl")
        for launch in launches
    )


def verdict(status: Status, reason: str = "because") -> Verdict:
    return parts.verdict(status, EXIT_CODES[status], parts.finding(status, reason))


@pytest.mark.parametrize(
    ("second", "status", "code", "said"),
    [
        ("fail", "fail", 1, "confirmed on a second machine: also slow"),
        ("pass", "pass", 0, "not confirmed on a second machine: also slow"),
        ("inconclusive", "inconclusive", 3, "not decided on the second machine"),
        ("invalid-env", "inconclusive", 3, "not decided on the second machine"),
        ("error", "inconclusive", 3, "not decided on the second machine"),
    ],
)
def test_a_fail_needs_a_second_one(second: Status, status: str, code: int, said: str) -> None:
    found = confirm(verdict("fail", "slow"), verdict(second, "also slow"))
    assert (found.status, found.exit_code) == (status, code)
    assert found.findings[0].reason.startswith("slow; ")
    assert said in found.findings[0].reason


@pytest.mark.parametrize("first", ["pass", "error", "no-baseline", "inconclusive", "new"])
def test_what_did_not_fail_stays_as_it_was(first: Status) -> None:
    assert confirm(verdict(first), verdict("fail")) == verdict(first)


def measured(by: Verdict, run: str, machine: str) -> Verdict:
    return replace(by, origin=replace(by.origin, measurements=run, machine=machine))


FIRST = measured(verdict("fail"), "run a", "machine a")
SECOND = measured(verdict("pass"), "run b", "machine b")
REVISIONS = SECOND.revisions


def test_two_machines_that_saw_the_same_are_two_looks() -> None:
    assert confirm(FIRST, SECOND).status == "pass"


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (replace(SECOND, revisions=replace(REVISIONS, head="f" * 40)), "of head b81d3e5f7a9c and"),
        (replace(SECOND, revisions=replace(REVISIONS, base="f" * 40)), "of base 4f2a1c9d8e7b and"),
        (replace(SECOND, revisions=replace(REVISIONS, base=None)), "4f2a1c9d8e7b and none"),
        (replace(SECOND, margin_percent=60.0), "have margins of 3% and 60%"),
        (replace(SECOND, origin=replace(SECOND.origin, rules="s" * 64)), "by different rules"),
        (replace(SECOND, findings=()), "only one of the verdicts has models/squeezenet.onnx"),
        (
            replace(SECOND, findings=(parts.finding("pass", "fast", target="gpu"),)),
            "only one of the verdicts has",
        ),
        (measured(SECOND, "run a", "machine b"), "of one and the same run"),
        (measured(SECOND, "run b", "machine a"), "of one and the same machine"),
    ],
)
def test_what_is_no_second_look_at_the_same_is_refused(second: Verdict, said: str) -> None:
    with pytest.raises(ArtifactError, match=re.escape(said)) as refused:
        confirm(FIRST, second)
    assert refused.value.exit_code == USAGE
    with pytest.raises(ArtifactError):
        confirm(second, FIRST)


def test_verdicts_that_say_no_rules_are_refused() -> None:
    with pytest.raises(ArtifactError, match="by different rules"):
        confirm(replace(FIRST, origin=VerdictOrigin()), replace(SECOND, origin=VerdictOrigin()))


def test_where_nothing_was_measured_the_machine_does_not_matter() -> None:
    nothing = replace(parts.verdict("pass", 0), origin=VerdictOrigin(rules="r"))
    assert confirm(nothing, nothing) == nothing


def test_a_second_machine_does_not_allow_what_the_policy_forbids() -> None:
    first = replace(verdict("fail"), policy_fails=True)
    found = (confirm(first, verdict("pass")).status, confirm(first, verdict("pass")).exit_code)
    assert found == ("fail", 1)
