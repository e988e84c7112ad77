"""The log for code scanning, by Microsoft's validator with the rules of GitHub, too."""

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.support.reports import KINDS, make_report
from tunegate.report.sarif import render

pytestmark = pytest.mark.pipelines

PACKAGE = "@microsoft/sarif-multitool-linux"


def test_every_log_is_accepted(npm_tools: Path, tmp_path: Path) -> None:
    program = npm_tools.parent / PACKAGE / "Sarif.Multitool"
    program.chmod(0o755)  # npm may run no script of a package
    logs = [tmp_path / f"{kind}.sarif" for kind in KINDS]
    for kind, log in zip(KINDS, logs, strict=True):
        log.write_text(render(make_report(kind)))
    found = tmp_path / "found.json"
    command = [program, "validate", *logs, "--rule-kind", "Sarif;Ghas", "-o", found]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert f"{len(KINDS)} files scanned" in done.stdout, done.stdout + done.stderr
    (run,) = json.loads(found.read_text())["runs"]
    levels = Counter(each.get("level", "warning") for each in run.get("results", []))
    assert not levels["error"], done.stdout
