from __future__ import annotations

import msgspec
import pytest

from tests.support.tuning_tasks import key_of, make_outcome, make_record, make_task
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.tune.revalidation import Challenge, challenges, results_of, revalidation_shard
from tunegate_cache.format.records import DeviceFingerprint, ExactHit, Miss, TuningRecord

TASK = make_task()


def schedule(number: int, milliseconds: float, *, device: str = "a machine") -> TuningRecord:
    record = make_record(milliseconds=milliseconds)
    kind = DeviceFingerprint(name=device, kind="cpu", units=2, memory_bytes=8 << 30)
    return msgspec.structs.replace(record, decisions=((3, (number, 1)),), device=kind)


THEIRS, OURS, DEFAULT = schedule(1, 1.0), schedule(2, 2.0), make_record()
STANDING = Challenge(task=TASK, challengers=(THEIRS,), incumbent=OURS)


def measured(*records: TuningRecord, before_ms: float = 10.0) -> dict[object, TaskOutcome]:
    return {TASK.key: make_outcome(records=records, before_ms=before_ms)}


def status(*records: TuningRecord, before_ms: float = 10.0) -> str:
    ((promotion, winner),) = results_of((STANDING,), measured(*records, before_ms=before_ms))  # type: ignore[arg-type]
    assert (winner is not None) == (promotion.status == "taken")
    return promotion.status


def test_only_schedules_that_main_does_not_have_stand_and_only_the_best_few() -> None:
    theirs = ExactHit(tuple(schedule(number, float(number)) for number in range(1, 6)))
    (standing,) = challenges([TASK], {TASK.key: theirs}, {TASK.key: ExactHit((OURS,))})
    assert [r.decisions[0][1][0] for r in standing.challengers] == [1, 3]
    assert standing.incumbent == OURS
    assert challenges([TASK], {TASK.key: theirs}, {TASK.key: theirs}) == ()
    assert challenges([TASK], {TASK.key: Miss("absent")}, {}) == ()


def test_what_main_has_is_measured_beside_them() -> None:
    shard = revalidation_shard("cpu", (STANDING,), 60.0)
    (planned,) = shard.tasks
    assert planned.resolved.lookup.records == (THEIRS, OURS)  # type: ignore[union-attr]
    assert (planned.trials, shard.budget.seconds) == (0, 60.0)
    assert revalidation_shard("gpu", (STANDING,), None).tasks == ()


@pytest.mark.parametrize(
    ("theirs_ms", "ours_ms", "default_ms", "expected"),
    [
        (1.0, 2.0, 10.0, "taken"),
        (2.0, 2.0, 10.0, "slower"),
        (3.0, 2.0, 10.0, "slower"),
        (1.0, 2.0, 1.0, "slower"),
    ],
)
def test_a_schedule_must_beat_what_main_has_and_no_schedule_at_all(
    theirs_ms: float, ours_ms: float, default_ms: float, expected: str
) -> None:
    records = (schedule(1, theirs_ms), schedule(2, ours_ms))
    assert status(*records, before_ms=default_ms) == expected


def test_what_did_not_run_is_rejected_and_what_was_not_tried_is_said_so() -> None:
    assert status(schedule(2, 2.0)) == "rejected"
    ((promotion, winner),) = results_of((STANDING,), {})
    assert (promotion.status, winner) == ("not-measured", None)
    stopped = {TASK.key: make_outcome(stopped="not-started")}
    assert results_of((STANDING,), stopped)[0][0].status == "not-measured"


@pytest.mark.parametrize(
    ("measured_ms", "device", "is_implausible"),
    [(1.2, "a machine", False), (1.5, "a machine", True), (1.5, "another machine", False)],
)
def test_a_claim_is_held_against_its_writer_only_on_the_same_kind_of_device(
    measured_ms: float, device: str, is_implausible: bool
) -> None:
    ((promotion, _),) = results_of(
        (STANDING,),
        measured(schedule(1, measured_ms, device=device)),  # type: ignore[arg-type]
    )
    assert (promotion.claimed_ms, promotion.is_implausible) == (1.0, is_implausible)
    assert promotion.key == key_of("conv2d")
