from __future__ import annotations

import msgspec

from tests.support import reports
from tunegate.run_history.entries import history_entries


def test_a_line_for_each_model_that_was_measured() -> None:
    report = reports.slowed()
    (line,) = history_entries(report, at=7, release="v1")
    finding = report.verdict.findings[0]
    assert (line.model, line.target, line.head_ms) == (
        finding.model,
        finding.target,
        finding.head_ms,
    )
    assert (line.at, line.release, line.status) == (7, "v1", "fail")
    assert line.commit == report.verdict.revisions.head
    assert line.runtime == "tvm"


def test_what_was_not_measured_leaves_nothing() -> None:
    assert (
        history_entries(msgspec.structs.replace(reports.slowed(), run=None), at=7, release="") == ()
    )
