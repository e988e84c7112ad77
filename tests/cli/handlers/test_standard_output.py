from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.measured_cells import make_changes
from tunegate.artifacts import artifact_io
from tunegate.artifacts.changes import ChangeSet
from tunegate.cli.handlers.reporting import write_json, write_line


def test_a_line_goes_to_the_standard_output_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    write_line("what was asked for")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("what was asked for\n", "")


def test_what_was_sent_to_a_pipe_is_read_like_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_json(make_changes())
    file = tmp_path / "changes.json"
    file.write_text(capsys.readouterr().out)
    assert artifact_io.read(file, ChangeSet) == make_changes()
