from typing import Literal

import msgspec
import pytest

from tests.support import reports
from tests.support.present import present
from tests.support.report_parts import DEVICE
from tunegate.artifacts.history import HistoryEntry, RunFacts
from tunegate.artifacts.verdicts import Report
from tunegate.report import history

FACTS = RunFacts(
    at=7,
    repository="acme/vision",
    release="v1",
    change=42,
    authored=5,
    run_url="https://ci.example/runs/9",
)


def lines_of(report: Report) -> tuple[HistoryEntry, ...]:
    return history.history_entries(report, FACTS, {"cpu": 3.6})


def test_a_line_for_each_model_that_was_measured() -> None:
    report = reports.slowed()
    (line,) = lines_of(report)
    finding = report.verdict.findings[0]
    expected = (finding.model, finding.target, finding.head_ms)
    assert (line.model, line.target, line.head_ms) == expected
    assert (line.at, line.release, line.status) == (7, "v1", "fail")
    assert line.commit == report.verdict.revisions.head
    assert line.runtime == "tvm"
    assert line.reason == finding.reason


def test_the_versions_are_those_of_the_machine_that_measured() -> None:
    report = reports.slowed()
    environment = {"apache-tvm version": "0.25.0", "kernel": "6.1", "tunegate version": "0.1.0"}
    run = msgspec.structs.replace(present(report.run), environment=environment)
    (line,) = lines_of(msgspec.structs.replace(report, run=run))
    assert line.versions == {"apache-tvm": "0.25.0", "tunegate": "0.1.0"}


def test_what_cost_nothing_and_was_not_measured_leaves_nothing() -> None:
    assert lines_of(reports.nothing_changed()) == ()
    bare = msgspec.structs.replace(reports.slowed(), run=None, plan=None)
    finding = msgspec.structs.replace(bare.verdict.findings[0], head_ms=None)
    verdict = msgspec.structs.replace(bare.verdict, findings=(finding,))
    assert lines_of(msgspec.structs.replace(bare, verdict=verdict)) == ()


@pytest.mark.parametrize("kind", sorted(reports.KINDS))
def test_every_line_that_is_written_is_read_again(kind: str) -> None:
    for line in lines_of(reports.make_report(kind)):
        assert msgspec.json.decode(msgspec.json.encode(line), type=HistoryEntry) == line


def test_warming_leaves_its_price_and_no_latency() -> None:
    report = reports.slowed()
    machine = history.TuningMachine(DEVICE, {"apache-tvm version": "0.25.0"})
    (line,) = history.warmed_entries(
        present(report.plan),
        report.outcomes,
        FACTS,
        machine,
        (),
        usd_per_hour={"cpu": 3.6},
        work_seconds=20.0,
    )
    assert (line.status, line.head_ms, line.device) == ("warmed", None, DEVICE.name)
    assert line.versions == {"apache-tvm": "0.25.0"}
    assert line.cost is not None
    assert line.cost.seconds == pytest.approx(report.outcomes[0].spent.seconds)
    assert (line.cost.gate_seconds, line.cost.gate_usd) == pytest.approx((20.0, 0.02))
    assert line.cost.saved_seconds == 0


@pytest.mark.parametrize("status", ["cancelled", "aborted"])
def test_a_run_without_an_end_leaves_all_that_it_spent_and_no_verdict(
    status: Literal["cancelled", "aborted"],
) -> None:
    report = reports.slowed()
    ended = history.Unfinished(
        status=status, reason="out of disk", gate_seconds=36.0, usd_per_hour={"cpu": 3.6}
    )
    machine = history.TuningMachine(DEVICE, {})
    (line,) = history.unfinished_entries(
        present(report.plan), report.outcomes, FACTS, machine, ended
    )
    assert (line.status, line.reason, line.head_ms) == (status, "out of disk", None)
    assert line.cost is not None
    assert line.cost.seconds == pytest.approx(report.outcomes[0].spent.seconds)
    assert line.cost.trials == sum(task.trials for task in report.outcomes[0].tasks)
    assert (line.cost.gate_seconds, line.cost.gate_usd) == pytest.approx((36.0, 0.036))
    assert (line.cost.gained_ms, line.cost.saved_seconds) == (0, 0)


def test_a_run_that_had_not_tuned_yet_leaves_its_time_alone() -> None:
    report = reports.slowed()
    ended = history.Unfinished(status="cancelled", reason="", gate_seconds=5.0, usd_per_hour={})
    (line,) = history.unfinished_entries(
        present(report.plan), (), FACTS, history.TuningMachine(DEVICE, {}), ended
    )
    assert line.cost is not None
    assert (line.cost.trials, line.cost.gate_seconds, line.cost.gate_usd) == (0, 5.0, None)
