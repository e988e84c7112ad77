"""What candidates cost, by what they were tried for."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.outcome_parts import outcome
from tunegate.artifacts.outcomes import CandidateCost, TuningOutcome
from tunegate.artifacts.plans import Cost
from tunegate.report.cost_table import FilterAudit, audit, spending
from tunegate.report.markdown import markdown_table
from tunegate.report.report_tables import spending_table


def cost(**fields: object) -> CandidateCost:
    usual = {
        "stage": "quick",
        "origin": "search",
        "pick": "predicted",
        "status": "ok",
        "build_seconds": 0.2,
        "run_seconds": 0.1,
        "milliseconds": 2.0,
        "improved": False,
    }
    return CandidateCost(**(usual | fields))  # type: ignore[arg-type]  # a builder


def with_costs(*costs: CandidateCost, usd: float | None = None) -> TuningOutcome:
    made = outcome(spent=Cost(seconds=1.0, usd=usd))
    (first, *rest) = made.tasks
    tasks = [msgspec.structs.replace(first, costs=costs, search_seconds=0.3)]
    tasks += [msgspec.structs.replace(task, costs=(), search_seconds=0.0) for task in rest]
    return msgspec.structs.replace(made, tasks=tuple(tasks))


def test_every_second_is_in_one_row() -> None:
    made = with_costs(
        cost(improved=True),
        cost(),
        cost(status="compile", milliseconds=None),
        cost(stage="confirm"),
        usd=1.5,
    )
    rows = spending([made])
    assert [row.candidates for row in rows] == [1, 1, 1, 1, None]
    assert [row.seconds for row in rows] == pytest.approx([0.3] * 5)
    assert [row.share for row in rows] == pytest.approx([0.2] * 5)
    assert [row.usd for row in rows] == pytest.approx([0.3] * 5)


def test_a_rejected_candidate_near_the_best_was_rejected_wrongly() -> None:
    made = with_costs(
        cost(milliseconds=1.0),
        cost(pick="audit", milliseconds=1.01),
        cost(pick="audit", milliseconds=1.5),
        cost(pick="audit", milliseconds=None, status="timeout"),
        cost(pick="audit", stage="confirm", milliseconds=1.0),
    )
    assert audit([made]) == FilterAudit(audited=3, wrong=1)


def test_joules_are_shared_like_the_bill() -> None:
    made = msgspec.structs.replace(
        with_costs(cost()), spent=Cost(seconds=1.0, joules=60.0, energy_source="rapl")
    )
    rows = spending([made])
    assert [row.joules for row in rows] == pytest.approx([0.0, 30.0, 0.0, 0.0, 30.0])
    assert "30\xa0J" in markdown_table(spending_table(rows))
    assert "Energy" not in markdown_table(spending_table(spending([with_costs(cost())])))
