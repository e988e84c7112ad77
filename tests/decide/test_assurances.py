import msgspec
import pytest

from tests.support.measured_cells import CELL
from tunegate.artifacts.measurements import Comparison, Excluded, Inside, Interval, Stalls
from tunegate.config import GateConfig
from tunegate.decide import checks

GATE = GateConfig()
CLEAN = Excluded(
    asked_percent=20.0,
    share_percent=19.6,
    confidence_percent=95.0,
    mean_percent=5.0,
    starts=16,
    slow=0,
    cut_off_percent=11.8,
    is_clean=True,
)


def inside(what: str, decision: str, *, is_resolved: bool = True) -> Inside:
    return Inside(
        what=what,  # type: ignore[arg-type]  # a builder
        base_ms=1.0,
        head_ms=1.2,
        change_percent=Interval(low=-2.0, center=6.0, high=14.0),
        is_resolved=is_resolved,
        decision=decision,  # type: ignore[arg-type]
    )


def compared(*tests: Inside, excluded: Excluded | None = CLEAN) -> Comparison:
    return Comparison(
        cell=CELL,
        base_ms=1.0,
        head_ms=1.0,
        reference_ms=None,
        change_percent=Interval(low=-1.0, center=0.0, high=1.0),
        decision="pass",
        median="pass",
        launches=4,
        effects_percent=(),
        projected_launches=None,
        stopped="decided",
        inside=tests,
        excluded=excluded,
    )


def test_a_pass_says_what_it_excludes_and_what_it_cannot_tell() -> None:
    found = compared(
        inside("mean", "pass"), inside("p90", "pass"), inside("p99", "pass", is_resolved=False)
    )
    assert checks.assurances(found) == (
        "the mean is at most 14% slower, p90 is at most 14% slower, p99 is not resolvable here",
        "fewer than 20% of launches are slow, with 95% confidence",
    )


def test_a_pass_says_after_how_many_inferences_it_looked_away() -> None:
    counted = msgspec.structs.replace(CLEAN, inferences=1240)
    last = checks.assurances(compared(excluded=counted))[-1]
    assert last == "no process ran longer than 1,240 inferences"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"asked_percent": 0.0, "share_percent": 53.2},
            "fewer than 54% of launches are slow, with 95% confi",
        ),
        ({"asked_percent": 0.0}, "(gate.rare-launches is 0)"),
        (
            {"asked_percent": 0.0, "share_percent": None},
            "how many launches are slow is not known (ga",
        ),
    ],
)
def test_it_never_claims_more_than_was_shown(changes: dict[str, float], said: str) -> None:
    found = compared(excluded=msgspec.structs.replace(CLEAN, **changes))
    assert any(said in each for each in checks.assurances(found))


def test_what_is_not_excluded_names_the_slow_starts_or_the_missing_ones() -> None:
    few = msgspec.structs.replace(CLEAN, starts=6, is_clean=False)
    said = checks.reason_undecided(compared(excluded=few), GATE)
    assert said.startswith("only 6 of 16 starts fit into the time: 20% of launches")
    slow = msgspec.structs.replace(CLEAN, slow=3, is_clean=False)
    assert checks.reason_undecided(compared(excluded=slow), GATE) == (
        "3 of 16 starts of the head were over +12%: 20% of launches or more may be slow, which "
        "makes the mean over +5%"
    )
    on_cases = msgspec.structs.replace(slow, slow_cases=(2, 5))
    assert checks.reason_undecided(compared(excluded=on_cases), GATE).startswith(
        "3 of 16 starts of the head were over +12%, all with cases 2 and 5 of inputs: 20% of"
    )
    told = ("3 of 16 starts of the head were over +12%",)
    assert checks.slow_starts_clause(compared(excluded=slow)) == told
    assert checks.slow_starts_clause(compared()) == ()


def test_what_fails_inside_a_launch_is_named() -> None:
    failed = inside("mean", "fail")
    over = msgspec.structs.replace(failed.change_percent, low=11.0)
    found = compared(msgspec.structs.replace(failed, change_percent=over), inside("p90", "pass"))
    assert checks.slower_inside(found, GATE) == (
        "slower in the mean by +6% (+11 to +14%), over the 10% margin of the mean and the "
        "tail (gate.tail-margin-percent)"
    )
    by_stalls = compared(inside("mean-of-all", "fail"))
    told = "slower in the mean of all inferences by +6% (-2 to +14%)"
    assert checks.slower_inside(by_stalls, GATE) == told
    open_tests = compared(inside("mean", "undecided"))
    assert checks.reason_undecided(open_tests, GATE).startswith(
        "possibly slower in the mean by +6%"
    )


def test_stalls_that_come_with_the_head_are_told_where_the_median_is_open() -> None:
    seen = Stalls(times=5.0, base=1, head=13, base_worse=0, head_worse=11, inferences=2760)
    both = msgspec.structs.replace(seen, base_worse=9)
    stalled = msgspec.structs.replace(inside("mean-of-all", "undecided"), stalls=(seen,))
    (clause,) = checks.stalls_clause(compared(stalled))
    assert clause == (
        "13 stalls of 5x, where the base has 1 (the head has more in 11 turns, the base in 0)"
    )
    assert checks.stalls_clause(compared(msgspec.structs.replace(stalled, stalls=(both,)))) == ()
    assert checks.stalls_clause(compared(inside("mean", "undecided"))) == ()


def test_a_pass_says_how_rare_a_stall_it_would_have_missed() -> None:
    """A machine with short stalls of its own says so of the long ones beside."""
    none = Stalls(times=5.0, base=0, head=0, base_worse=0, head_worse=0, inferences=4500)
    long = msgspec.structs.replace(none, times=50.0)
    clean = msgspec.structs.replace(inside("mean-of-all", "pass"), stalls=(none, long))
    said = "stalls of 5x in fewer than one of 1,500 inferences"
    assert said in checks.assurances(compared(inside("mean", "pass"), clean))
    busy = msgspec.structs.replace(clean, stalls=(msgspec.structs.replace(none, head=40), long))
    said = "stalls of 5x in fewer than one of 86, of 50x in fewer than one of 1,500 inferences"
    assert said in checks.assurances(compared(inside("mean", "pass"), busy))


def test_what_only_stalls_hold_up_is_not_said_to_span_a_margin() -> None:
    seen = Stalls(times=5.0, base=0, head=5, base_worse=0, head_worse=5, inferences=2400)
    of_mean = msgspec.structs.replace(inside("mean-of-all", "undecided"), stalls=(seen,))
    gate = msgspec.structs.replace(GATE, tail_margin_percent=20.0)
    assert checks.reason_undecided(compared(of_mean), gate) == (
        "inferences that stall may come with the head; 5 stalls of 5x, where the base has 0"
    )
