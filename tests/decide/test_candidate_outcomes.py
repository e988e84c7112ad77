from __future__ import annotations

import msgspec
import pytest

from tests.support.measured_cells import make_build
from tunegate.artifacts.builds import (
    Build,
    CandidateTime,
    ErrorEstimate,
    RefusedCandidate,
    RuntimeChoice,
    unbuilt,
)
from tunegate.decide.gate import candidate_outcomes

MEASURED = RuntimeChoice(
    times=(
        CandidateTime(candidate="onnxruntime", title="ONNX Runtime", ms=3.0),
        CandidateTime(candidate="tvm", title="TVM", ms=2.0),
    ),
    refused=(RefusedCandidate(candidate="third", title="Third", reason="no LSTM"),),
)


def outcomes(build: Build | None) -> list[tuple[str, bool, float | None, str]]:
    return [(each.title, each.ships, each.ms, each.reason) for each in candidate_outcomes(build)]


def test_every_candidate_is_told_the_one_that_ships_first() -> None:
    assert outcomes(msgspec.structs.replace(make_build(), choice=MEASURED)) == [
        ("TVM", True, 2.0, ""),
        ("ONNX Runtime", False, 3.0, ""),
        ("Third", False, None, "no LSTM"),
    ]


def test_what_ships_has_the_error_of_its_own_build() -> None:
    remembered = RuntimeChoice(
        times=(CandidateTime(candidate="tvm", title="TVM", ms=2.0, has_unknown_error=True),)
    )
    error = ErrorEstimate(what="max-error", center=0.8, low=0.7, high=1.1, samples=73)
    build = msgspec.structs.replace(make_build(), choice=remembered, error_estimate=(error,))
    (ours,) = candidate_outcomes(build)
    assert (ours.error, ours.has_unknown_error) == (error, False)


def test_what_a_budget_refuses_has_its_error() -> None:
    error = ErrorEstimate(what="max-error", center=28.0, low=24.3, high=44.3, samples=64)
    refused = RefusedCandidate(candidate="third", title="Third", reason="too far off", error=error)
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
    choice = RuntimeChoice(reason="not measured: no answer")
    assert outcomes(msgspec.structs.replace(make_build(), choice=choice)) == [
        ("TVM", True, None, "not measured: no answer")
    ]


@pytest.mark.parametrize("head", [None, unbuilt("its file is missing")])
def test_without_a_candidate_there_is_nothing_to_tell(head: Build | None) -> None:
    assert outcomes(head) == []
