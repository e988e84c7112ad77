from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.report_parts import changes
from tests.support.workspace import Workspace
from tunegate import artifact_io, pipeline
from tunegate.artifacts.changes import ChangeSet
from tunegate.artifacts.verdicts import Verdict
from tunegate.config import Config, ModelConfig

LIGHT_RUN = """\
import sys
from tunegate.cli import main
code = main(["run", "--base", "HEAD", "--head", "HEAD"])
assert "tvm" not in sys.modules, "the compiler was imported for nothing"
sys.exit(code)
"""


def test_a_change_that_touches_no_model_passes_and_leaves_the_files_of_a_run(
    tmp_path: Path,
) -> None:
    config = Config(models=(ModelConfig(path="**/*.onnx"),))
    report = pipeline.nothing_to_do(config, changes(), tmp_path)
    assert report.verdict.status == "pass"
    assert report.verdict.exit_code == 0
    assert report.verdict.findings == ()
    assert artifact_io.read(tmp_path / "verdict.json", Verdict) == report.verdict
    assert artifact_io.read(tmp_path / "changes.json", ChangeSet) == report.changes


def test_the_compiler_is_not_imported_when_nothing_changed(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    done = subprocess.run(
        [sys.executable, "-c", LIGHT_RUN],
        cwd=workspace.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name in ("verdict.json", "report.md", "report.html", "junit.xml", "sarif.json"):
        assert (workspace.root / ".tunegate" / name).exists()
