from __future__ import annotations

from pathlib import Path

from tests.support import report_parts as parts
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
