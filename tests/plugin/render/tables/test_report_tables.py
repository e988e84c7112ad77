from __future__ import annotations

import msgspec

from tests.support.reports import make_report
from tunegate.render.operators import parts, tuned_rows
from tunegate.render.tables.report_tables import (
    models_table,
    operators_table,
    tasks_table,
    tuning_table,
)
from tunegate.render.tables.table import StatusWord

REPORT = make_report("slowed")


def test_every_model_has_its_verdict_and_the_reason() -> None:
    table = models_table(REPORT.verdict.findings, REPORT.verdict)
    (cells,) = table.cells()
    assert cells[0] == StatusWord("fail")
    assert cells[-1] == REPORT.verdict.findings[0].reason.rstrip(".")


def test_operators_are_told_with_their_share_of_the_slowdown() -> None:
    table = operators_table(parts(REPORT.verdict.findings[0].differences))
    assert table.cells()
    assert "Of the slowdown" in [column.title for column in table.columns]


def test_a_task_tells_how_it_ended_and_what_failed() -> None:
    (first, *_) = tuned_rows(REPORT)
    failing = msgspec.structs.replace(first, failures="2 run-timeout")
    assert str(tasks_table([failing]).cells()[0][-1]).endswith("; failed: 2 run-timeout")


def test_tuning_is_one_row() -> None:
    assert len(tuning_table(REPORT.verdict.tuning).cells()) == 1
