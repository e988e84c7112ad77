from __future__ import annotations

from pathlib import Path

from tests.support import report_parts as parts
from tests.support.reports import make_report
from tunegate import artifact_io
from tunegate_action.results import read_results, stamps


def test_what_was_written_since_is_told(tmp_path: Path) -> None:
    before = stamps(tmp_path)
    finding = parts.finding("fail", "slow")
    artifact_io.write(tmp_path / "verdict.json", parts.verdict("fail", 1, finding))
    artifact_io.write_text(tmp_path / "report.md", "# slow")
    artifact_io.write_text(tmp_path / "matrix.json", '{"include": [{"shard": 0}]}\n')
    results = read_results(tmp_path, before, 1)
    assert results.markdown == "# slow"
    assert (results.outputs()["verdict"], results.outputs()["any"]) == ("fail", "true")
    assert "slow" in results.annotations()[0]


def test_what_lay_there_before_is_not_told(tmp_path: Path) -> None:
    artifact_io.write(tmp_path / "verdict.json", parts.verdict("pass", 0))
    artifact_io.write_text(tmp_path / "report.md", "# pass")
    results = read_results(tmp_path, stamps(tmp_path), 2)
    outputs = results.outputs()
    assert results.markdown == ""
    assert (outputs["verdict"], outputs["report"], outputs["any"]) == ("error", "", "false")


def test_no_link_is_read(tmp_path: Path) -> None:
    before = stamps(tmp_path)
    (tmp_path / "secret").write_text("secret")
    artifact_io.write(tmp_path / "verdict.json", parts.verdict("pass", 0))
    (tmp_path / "report.md").symlink_to(tmp_path / "secret")
    assert read_results(tmp_path, before, 0).markdown == ""


def test_loosened_rules_are_annotated_before_the_findings(tmp_path: Path) -> None:
    artifact_io.write(tmp_path / "verdict.json", make_report("hostile").verdict)
    policy, finding = read_results(tmp_path, {}, 1).annotations()
    assert policy.startswith("::warning title=tunegate%3A policy-change::")
    assert finding.startswith("::error ")


def test_forbidden_changes_of_the_rules_are_errors_and_stricter_ones_nothing(
    tmp_path: Path,
) -> None:
    artifact_io.write(tmp_path / "verdict.json", make_report("loosened").verdict)
    found = read_results(tmp_path, {}, 1).annotations()
    assert len(found) == 3
    assert all(line.startswith("::error ") for line in found)
