from __future__ import annotations

from tests.support.reports import make_report
from tunegate.cli.handlers.reporting import rendered


def test_every_file_of_a_report_is_rendered() -> None:
    files = rendered(make_report("measured"))
    assert set(files) == {"report.md", "report.html", "junit.xml", "sarif.json"}
    assert all(text.endswith("\n") for text in files.values())
