from __future__ import annotations

import pytest

from tests.support.report_parts import finding, summary, verdict
from tunegate.artifacts.builds import ErrorEstimate
from tunegate.artifacts.measurements import TaskDifference
from tunegate.artifacts.verdicts import CandidateOutcome, Status, Verdict
from tunegate.cli.handlers.demo import (
    SLOWED_LAYER,
    Problem,
    absent_lines,
    election_lines,
    exit_code,
    first_problem,
    second_problem,
    third_problem,
)
from tunegate.config import TargetConfig

WANTED = {first_problem: "new", second_problem: "pass", third_problem: "fail"}


def ended(status: Status, *slower: str, exact: int = 4, trials: int = 0) -> Verdict:
    differences = tuple(
        TaskDifference(
            name=name, base_ms=1.0, head_ms=2.0, source="library", library="ONNX Runtime"
        )
        for name in slower
    )
    found = finding(status, "why", differences=differences)
    return verdict(status, 0, found, tuning=summary(tasks=4, exact=exact, trials=trials))


def test_three_acts_that_go_as_expected_are_a_pass() -> None:
    problems = [
        first_problem(ended("new")),
        second_problem(ended("pass")),
        third_problem(ended("fail", f"conv of {SLOWED_LAYER}", "another")),
    ]
    assert problems == [None, None, None]
    assert exit_code([]) == 0


@pytest.mark.parametrize("judge", WANTED)
@pytest.mark.parametrize(
    ("status", "code"),
    [("inconclusive", 3), ("invalid-env", 4), ("no-baseline", 4), ("error", 70), ("waived", 70)],
)
def test_a_machine_that_is_too_noisy_is_no_bug(judge: type, status: Status, code: int) -> None:
    problem = judge(ended(status))
    assert problem.exit_code == exit_code([problem]) == code
    assert ("while nothing else runs" in problem.text) == (code != 70)


def test_new_weights_need_no_trial_whatever_the_first_act_left() -> None:
    assert second_problem(ended("pass", exact=3)) is None
    assert second_problem(ended("pass", exact=3, trials=40)) == Problem("needed trials", 70)


@pytest.mark.parametrize(
    ("slower", "code"), [((), 4), (("another", SLOWED_LAYER), 4), (("another",), 70)]
)
def test_a_slow_layer_that_is_not_named_first_was_disturbed(
    slower: tuple[str, ...], code: int
) -> None:
    problem = third_problem(ended("fail", *slower))
    assert problem is not None
    assert problem.exit_code == code


def test_what_the_machine_explains_comes_before_a_bug() -> None:
    assert exit_code([Problem("", 70), Problem("", 3), Problem("", 4)]) == 4
    assert exit_code([Problem("", 70), Problem("", 3)]) == 3
    assert exit_code([Problem("", 70)]) == 70


def outcome(title: str, ms: float | None = None, **fields: object) -> CandidateOutcome:
    return CandidateOutcome(candidate=title, title=title, ms=ms, **{"ships": False, **fields})  # type: ignore[arg-type]  # a builder


def test_each_candidate_of_an_election_is_a_line() -> None:
    off = ErrorEstimate(what="max-error", center=1.5, low=1.2, high=2.0, samples=74)
    lines = list(
        election_lines(
            [
                outcome("TVM", 4.0),
                outcome("OpenVINO (float16)", reason="it has no avx512_fp16"),
                outcome("OpenVINO (bfloat16)", 1.0, ships=True, error=off),
                outcome("TVM (int8)", 2.0, has_unknown_error=True),
            ]
        )
    )
    assert lines == [
        "ships OpenVINO (bfloat16): error 1.5% (1.2 to 2)",
        "      TVM (int8): error not measured in this run; what ships is 50% faster",
        "      TVM: float32; what ships is 75% faster",
        "      OpenVINO (float16): it has no avx512_fp16",
    ]
    assert list(election_lines([outcome("TVM", 4.0)])) == []


class Absent:
    """A runtime that says why it does not take part."""

    name = title = "Any"

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def unsupported(self, target: TargetConfig) -> str:
        return self._reason


def test_a_runtime_that_is_not_installed_is_told_with_its_command() -> None:
    needs = "needs any: pip install 'tunegate[any]'"
    runtimes = [Absent(""), Absent(needs)]
    assert list(absent_lines(runtimes)) == [f"Any did not take part: it {needs}"]
