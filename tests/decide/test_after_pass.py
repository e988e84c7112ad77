import random
import re

import msgspec
import pytest
from msgspec.structs import replace

from tests.support import report_parts as parts
from tests.support.measured_cells import make_launches
from tunegate.artifacts.histogram import histogram
from tunegate.artifacts.measurements import Launch
from tunegate.artifacts.verdicts import EXIT_CODES, Status, Verdict, VerdictOrigin
from tunegate.decide.assessment import Next, after_pass, assess
from tunegate.decide.gate import confirm
from tunegate.decide.sequential import PLANNED, StoppingRule
from tunegate.errors import USAGE, ArtifactError

RULE = StoppingRule(margin_percent=3.0, analyses=PLANNED, cells=1, rare=0.2)


def quiet(count: int, center: float = 0.0) -> tuple[Launch, ...]:
    rng = random.Random(4)
    launches = make_launches([rng.gauss(center, 0.003) for _ in range(count)])
    return tuple(msgspec.structs.replace(launch, noise=0.001) for launch in launches)


def following(
    launches: tuple[Launch, ...],
    probes: tuple[Launch, ...] = (),
    starts: tuple[int, ...] = (),
    rule: StoppingRule = RULE,
) -> Next:
    found = assess(launches, probes, starts, rule)
    assert found is not None
    return after_pass(found, starts, len(launches), rule)


def test_what_is_missing_is_looked_for_in_probes() -> None:
    assert following(quiet(4)) == Next(probes=12, starts=(16,))
    assert following(quiet(9)) == Next(probes=7, starts=(16,))


def test_many_launches_need_no_probes() -> None:
    assert following(quiet(19)) == Next(starts=(19,))


def test_clean_probes_end_it() -> None:
    assert following(quiet(4), quiet(12), (16,)) == Next(starts=(16,))


def test_nothing_is_looked_for_where_it_is_switched_off() -> None:
    off = msgspec.structs.replace(RULE, rare=0.0)
    assert following(quiet(4), rule=off) == Next()


def test_a_slow_start_is_answered_with_launches_of_both_sides() -> None:
    found = following(quiet(4), (*quiet(11), *make_launches([0.3])), (16,))
    assert found.launch
    assert found.starts[0] == 16
    assert found.starts[1] > 26


def test_what_no_launches_that_can_be_paid_for_would_exclude_is_over() -> None:
    few = msgspec.structs.replace(RULE, analyses=(4, 6))
    assert not following(quiet(6), (*quiet(11), *make_launches([0.3])), (16,), few).launch


def test_what_may_be_a_slow_machine_has_launches_until_their_bounds_answer() -> None:
    slow = make_launches([0.3] * 4)
    assert following(quiet(19), (*quiet(8), *slow), (16, 16)).launch
    assert not following(quiet(28), (*quiet(8), *slow), (16, 16)).launch


def test_a_mode_that_the_launches_to_come_would_prove_is_measured_on() -> None:
    """No bounds that can be paid for answer a share so rare."""
    rarer = msgspec.structs.replace(RULE, rare=0.05)
    assert following(quiet(13), make_launches([2.0] * 12), (16, 16), rarer).launch
    assert not following(quiet(13), (*quiet(8), *make_launches([0.7])), (16, 16), rarer).launch


def test_a_mean_that_may_be_slower_is_measured_on_before_anything_else() -> None:
    times = histogram([1.0] * 50)
    doubtful = tuple(
        msgspec.structs.replace(
            x, mean_effect=0.08 + 0.03 * (n % 2), base_times=times, head_times=times
        )
        for n, x in enumerate(quiet(6))
    )
    assert following(doubtful) == Next(launch=True)
    last = msgspec.structs.replace(RULE, analyses=(4, 6))
    assert following(doubtful, rule=last) == Next()


def test_launches_go_on_until_energy_and_loading_are_decided_too() -> None:
    asked = msgspec.structs.replace(RULE, rare=0.0, energy_margin_percent=5.0)
    assert following(with_joules(quiet(4), 0.05), rule=asked).launch
    assert following(with_joules(quiet(4), 0.0), rule=asked) == Next()
    assert following(with_joules(quiet(4), 0.5), rule=asked) == Next()
    assert following(quiet(4), rule=asked) == Next()  # no counter would tell it any better
    asked = msgspec.structs.replace(RULE, rare=0.0, load_margin_percent=5.0)
    assert following(with_loads(quiet(4), 1.05), rule=asked).launch
    assert following(with_loads(quiet(4), 1.0), rule=asked) == Next()


def with_loads(launches: tuple[Launch, ...], more: float) -> tuple[Launch, ...]:
    return tuple(msgspec.structs.replace(each, load_ms=(1.0, more)) for each in launches)


def with_joules(launches: tuple[Launch, ...], effect: float) -> tuple[Launch, ...]:
    return tuple(
        msgspec.structs.replace(
            launch, base_joules=1.0, head_joules=1.0 + effect, energy_source="rapl"
        )
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
    assert (confirm(first, verdict("pass")).status, confirm(first, verdict("pass")).exit_code) == (
        "fail",
        1,
    )
