from __future__ import annotations

import msgspec

from tests.support.reports import make_report
from tunegate.report.comment import comment_tasks_table, narrowed
from tunegate.report.cost_table import SpendingRow
from tunegate.report.operators import tuned_rows
from tunegate.report.report_tables import spending_table

REPORT = make_report("slowed")


def test_a_task_that_got_faster_tells_both_times_of_a_call() -> None:
    faster, *others = comment_tasks_table(tuned_rows(REPORT)).cells()
    assert faster[3] == "3.880 ms → 0.6600 ms"
    assert others[-1][3] == "21.00 µs"


def test_a_task_that_was_never_timed_has_no_time() -> None:
    row = msgspec.structs.replace(tuned_rows(REPORT)[0], before_ms=None, best_ms=None)
    assert comment_tasks_table([row]).cells()[0][3] == "–"


def test_energy_takes_the_place_of_shares() -> None:
    row = SpendingRow("search", None, 1.0, 0.5, 0.1)
    assert "Share" in [column.title for column in narrowed(spending_table([row]), "Share").columns]
    counted = msgspec.structs.replace(row, joules=5.0)
    titles = [column.title for column in narrowed(spending_table([counted]), "Share").columns]
    assert titles == ["What", "Candidates", "Worker time", "Cost", "Energy"]
