from __future__ import annotations

import msgspec

from tests.support.reports import make_report
from tunegate.artifacts.measurements import EnergyChange, Interval, TaskDifference
from tunegate.artifacts.plans import Cost
from tunegate.plan.costs import Saving
from tunegate.report.operators import parts, tuned_rows
from tunegate.report.report_tables import models_table, operators_table, savings_table, tasks_table
from tunegate.report.table import SignedTime, StatusWord

REPORT = make_report("slowed")


def test_every_model_has_its_verdict_and_its_target_below_it() -> None:
    table = models_table(REPORT.verdict.findings)
    (cells,) = table.cells()
    assert cells[0] == StatusWord("fail")
    assert [column.title for column in table.columns if column.under] == ["Target"]


def test_operators_are_told_with_their_share_of_the_slowdown() -> None:
    table = operators_table(parts(REPORT.verdict.findings[0].differences))
    told = [row[3] for row in table.cells()]
    assert [each.text for each in told if isinstance(each, SignedTime)] == [
        "+0.5000 ms (82%)",
        "+0.1120 ms (18%)",
        "−18.00 µs",
    ]


def test_a_layer_of_one_side_alone_is_new_or_gone() -> None:
    new = TaskDifference(
        name="conv_9", base_ms=None, head_ms=2.0, source="library", library="ONNX Runtime"
    )
    gone = TaskDifference(
        name="conv_8", base_ms=1.0, head_ms=None, source="library", library="ONNX Runtime"
    )
    first, second = operators_table(parts((new, gone))).cells()
    assert first[1:3] == ["new", "2.000 ms"]
    assert second[1:3] == ["1.000 ms", "gone"]


def test_a_task_tells_how_it_ended_and_what_failed() -> None:
    (first, *_) = tuned_rows(REPORT)
    failing = msgspec.structs.replace(first, failures="2 run-timeout")
    assert str(tasks_table([failing]).cells()[0][-1]).endswith("; failed: 2 run-timeout")


def test_joules_of_an_inference_have_a_column_where_something_tells_them() -> None:
    (finding,) = REPORT.verdict.findings
    change = Interval(low=1.0, center=2.0, high=3.0)
    told = EnergyChange(
        base_joules=0.1, head_joules=0.102, source="rapl", change_percent=change, decision=None
    )
    rows = [msgspec.structs.replace(finding, energy=each) for each in (told, None)]
    table = models_table(rows)
    at = [column.title for column in table.columns].index("Energy")
    assert [cells[at] for cells in table.cells()] == [
        "102 mJ (+2.0%)",
        "–",
    ]
    assert "Energy" not in [column.title for column in models_table(rows[1:]).columns]


def test_what_was_saved_is_told_by_whom() -> None:
    cost = Cost(seconds=90.0, joules=4500.0, energy_source="rapl")
    (cells,) = savings_table([Saving(by="cache", cost=cost)]).cells()
    assert str(cells[0]).startswith("exact hits of the cache")
    assert cells[1:] == ["1 min 30 s", "–", "4.5 kJ"]
