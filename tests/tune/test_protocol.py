from __future__ import annotations

import msgspec
import pytest

from tests.tune.test_experience import SKETCH
from tunegate.system.machine.device_lock import Claim
from tunegate.tune.protocol import Candidate, Measure, Measured, Placement, Proposed, Schedule, Slot

CANDIDATE = Candidate(
    number=1,
    workload="w",
    origin="search",
    schedule=Schedule(template="", decisions=()),
    module="",
    arguments=(),
)
SLOT = Slot(claim=Claim(uuid="cpu", directory="/d", wait_seconds=1.0))


def test_the_time_of_a_candidate_is_the_median_of_its_repeats() -> None:
    found = Measured(number=1, status="ok", nanoseconds=(3_000_000, 1_000_000, 2_000_000))
    assert found.median_ms == 2.0


@pytest.mark.parametrize(
    ("patience", "place", "watched"),
    [(None, None, None), (3.0, None, 3.0), (None, 5.0, 5.0), (3.0, 5.0, 3.0), (7.0, 5.0, 5.0)],
)
def test_a_worker_ends_itself_after_the_shorter_patience(
    request_of: Measure, patience: float | None, place: float | None, watched: float | None
) -> None:
    placement = Placement(slots=(SLOT,), limit_seconds=99.0, measuring_seconds=place)
    request = msgspec.structs.replace(request_of, patience_seconds=patience, place=placement)
    assert request.watched_seconds == watched


def test_a_request_without_a_place_has_its_own_patience_alone(request_of: Measure) -> None:
    assert request_of.watched_seconds is None
    assert msgspec.structs.replace(request_of, patience_seconds=3.0).watched_seconds == 3.0


def test_a_request_survives_the_pipe(request_of: Measure) -> None:
    sent = msgspec.msgpack.encode(request_of)
    assert msgspec.msgpack.decode(sent, type=Measure) == request_of


@pytest.fixture
def request_of() -> Measure:
    return Measure(
        candidate=CANDIDATE,
        target_json="{}",
        reference="/r",
        writes_reference=False,
        loser_ms=10.0,
        repeats=3,
        seed=1,
    )


def test_the_sketches_of_a_proposal_cross_to_another_process() -> None:
    proposed = Proposed("w", (CANDIDATE,), exhausted=False, sketches={"template": SKETCH})
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(proposed), type=Proposed) == proposed
