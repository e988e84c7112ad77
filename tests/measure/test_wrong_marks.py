"""A schedule that computes other numbers is marked, and no build is made with it again."""

from __future__ import annotations

import msgspec

from tests.support.measured_cells import DEVICE, make_build
from tests.support.tuning_records import make_record
from tunegate.artifacts.builds import Build, WrongKernel
from tunegate.measure.build_records import wrong_marks
from tunegate_cache.format.record_codec import decode_records, encode_record
from tunegate_cache.format.records import ExactHit, TuningRecord
from tunegate_cache.protocol.record_index import RecordIndex

BEST = make_record(run_nanoseconds=(1_000,), device=DEVICE, measured_at=5)
NEXT = make_record(
    run_nanoseconds=(2_000,), decisions=((3, (8, 8)), (5, (0,))), device=DEVICE, measured_at=5
)


def build_without(*records: TuningRecord) -> Build:
    wrong = tuple(
        WrongKernel(
            key=record.key,
            shape=record.shape,
            toolchain=record.toolchain,
            name="conv",
            template=record.template,
            decisions=record.decisions,
            max_absolute=0.1,
            max_relative=0.2,
        )
        for record in records
    )
    return msgspec.structs.replace(make_build("b"), wrong_kernels=wrong)


def marked(*wrong: TuningRecord) -> RecordIndex:
    index = RecordIndex(DEVICE)
    index.add([BEST, NEXT])
    index.add(wrong_marks([build_without(*wrong)], DEVICE, measured_at=6))
    return index


def test_a_marked_schedule_is_no_answer_any_more_and_the_next_one_is() -> None:
    found = marked(BEST).exact(BEST.key)
    assert isinstance(found, ExactHit)
    assert found.records == (NEXT,)
    assert [(r.status, r.decisions) for r in found.failures] == [("wrong", BEST.decisions)]


def test_marks_of_everything_leave_the_default_schedule() -> None:
    """What lies about schedules costs speed, and decides nothing else."""
    assert marked(BEST, NEXT).exact(BEST.key) is None


def test_a_mark_is_a_record_that_the_cache_takes() -> None:
    (mark,) = wrong_marks([build_without(BEST)], DEVICE, measured_at=6)
    assert decode_records(encode_record(mark)) == mark


def test_a_schedule_that_both_sides_had_is_marked_once() -> None:
    assert len(wrong_marks([build_without(BEST), build_without(BEST)], DEVICE, 6)) == 1


def test_a_later_measurement_that_computes_right_takes_a_mark_back() -> None:
    index = marked(BEST)
    index.add([msgspec.structs.replace(BEST, measured_at=7)])
    found = index.exact(BEST.key)
    assert isinstance(found, ExactHit)
    assert found.records[0].decisions == BEST.decisions
