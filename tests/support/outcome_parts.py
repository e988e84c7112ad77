"""Outcomes of tuning for the tasks of the reports in the tests."""

from msgspec.structs import replace

from tests.support.models.squeezenet import TASKS, TaskRow
from tests.support.report_parts import DEVICE
from tests.support.tuning_records import make_record
from tunegate.artifacts.outcomes import CandidateCost, TaskOutcome, TuningOutcome
from tunegate.artifacts.plans import Cost
from tunegate_cache.format.records import CONFIRMED_REPEATS, TuningRecord


def outcome(tasks: tuple[TaskRow, ...] = TASKS, **fields: object) -> TuningOutcome:
    wanted = {
        "shard": 0,
        "target": "cpu",
        "tasks": tuple(_outcome(row) for row in tasks),
        "spent": Cost(seconds=112.4, usd=0.1124),
        "device": DEVICE,
        "stopped": "finished",
    }
    return TuningOutcome(**(wanted | fields))  # type: ignore[arg-type]  # a builder


def _outcome(row: TaskRow) -> TaskOutcome:
    return TaskOutcome(
        key=row.key,
        target="cpu",
        name=row.name,
        source=row.source,
        records=_records(row),
        trials=row.trials,
        before_ms=row.before_ms,
        best_ms=row.ms,
        seconds=row.trials * 1.7,
        stopped=row.stopped,
        failures={"compile": 2, "timeout": 1} if row.trials else {},
        search_seconds=row.trials * 0.02,
        costs=_costs(row),
    )


def _records(row: TaskRow) -> tuple[TuningRecord, ...]:
    """One that is confirmed, of a search that came to its end."""
    if not row.trials or row.stopped not in {"finished", "converged"}:
        return ()
    confirmed = (1_000_000,) * CONFIRMED_REPEATS
    return (make_record(key=row.key, run_nanoseconds=confirmed),)


def _costs(row: TaskRow) -> tuple[CandidateCost, ...]:
    """Every third candidate is better than the one before; the last is measured again."""
    quick = tuple(
        CandidateCost(
            stage="quick",
            origin="search",
            pick="audit" if number % 10 == 9 else "predicted",
            status="compile" if number == 5 else "ok",
            build_seconds=0.2,
            run_seconds=0.1,
            milliseconds=None if number == 5 else 2.0 - number / 100,
            improved=number % 3 == 0,
        )
        for number in range(row.trials)
    )
    confirmed = (replace(cost, stage="confirm", improved=False) for cost in quick[-1:])
    return (*quick, *confirmed)
