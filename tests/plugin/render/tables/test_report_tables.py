from __future__ import annotations

import msgspec

from tests.support.reports import make_report
from tunegate.artifacts.measurements import TaskDifference
from tunegate.render.operators import parts, tuned_rows
from tunegate.render.tables.report_tables import (
    models_table,
    operators_table,
    tasks_table,
)
from tunegate.render.tables.table import SignedTime, StatusWord

REPORT = make_report("slowed")


def test_every_model_has_its_verdict_and_the_reason() -> None:
    table = models_table(REPORT.verdict.findings, REPORT.verdict)
    (cells,) = table.cells()
    assert cells[0] == StatusWord("fail")
    assert cells[-1] == REPORT.verdict.findings[0].reason.rstrip(".")


def test_operators_are_told_with_their_share_of_the_slowdown() -> None:
    table = operators_table(parts(REPORT.verdict.findings[0].differences))
    told = [row[3] for row in table.cells()]
    assert [each.text for each in told if isinstance(each, SignedTime)] == [
        "+0.5000 ms (82%)",
        "+0.1120 ms (18%)",
        "−18.00 µs",
    ]


def test_a_layer_of_one_side_alone_is_new_or_gone() -> None:
    new = TaskDifference(name="conv_9", base_ms=None, head_ms=2.0, source="library")
    gone = TaskDifference(name="conv_8", base_ms=1.0, head_ms=None, source="library")
    first, second = operators_table(parts((new, gone))).cells()
    assert first[1:3] == ["new", "2.000 ms"]
    assert second[1:3] == ["1.000 ms", "gone"]


def test_a_task_tells_how_it_ended_and_what_failed() -> None:
    (first, *_) = tuned_rows(REPORT)
    failing = msgspec.structs.replace(first, failures="2 run-timeout")
    assert str(tasks_table([failing]).cells()[0][-1]).endswith("; failed: 2 run-timeout")
