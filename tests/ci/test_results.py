from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from tests.report.budgeted import AFTER, BEFORE
from tests.support.report_parts import finding, verdict
from tunegate.artifacts import artifact_io
from tunegate.artifacts.builds import ShippedErrors
from tunegate.artifacts.changes import PolicyChange
from tunegate.artifacts.verdicts import Status
from tunegate.ci.job_results import read_results, stamps


def written(out: Path, status: Status, exit_code: int) -> None:
    artifact_io.write(out / "verdict.json", verdict(status, exit_code, finding(status, "why")))
    artifact_io.write_text(out / "report.md", status)
    artifact_io.write_text(out / "report.html", status)


def test_what_this_run_wrote_is_its_result(tmp_path: Path) -> None:
    before = stamps(tmp_path)
    written(tmp_path, "pass", 0)
    found = read_results(tmp_path, before, 0)
    assert (found.status, found.markdown, found.report) == (
        *("pass", "pass"),
        tmp_path / "report.html",
    )


@pytest.mark.parametrize("status", ["pass", "error", "fail"])
def test_what_an_earlier_run_wrote_is_not_also_with_the_same_exit_code(
    tmp_path: Path, status: Status
) -> None:
    code = {"pass": 0, "error": 2, "fail": 1}[status]
    written(tmp_path, status, code)
    found = read_results(tmp_path, stamps(tmp_path), code)
    assert (found.verdict, found.markdown, found.report) == (None, "", None)
    assert found.outputs()["verdict"] == ("error" if code else "")
    assert found.annotations(Path(), Path("tunegate.yaml")) == []


def test_a_file_that_is_written_again_in_the_same_instant_is_another_one(tmp_path: Path) -> None:
    written(tmp_path, "pass", 0)
    before = stamps(tmp_path)
    times = (tmp_path / "verdict.json").stat()
    written(tmp_path, "pass", 0)
    os.utime(tmp_path / "verdict.json", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert read_results(tmp_path, before, 0).status == "pass"


@pytest.mark.parametrize("exit_code", [1, 2, 4, 70, 130])
def test_a_verdict_with_another_exit_code_did_not_end_the_run(
    tmp_path: Path, exit_code: int
) -> None:
    before = stamps(tmp_path)
    written(tmp_path, "pass", 0)
    found = read_results(tmp_path, before, exit_code)
    assert (found.status, found.verdict, found.markdown) == ("error", None, "")


def test_no_link_is_read(tmp_path: Path) -> None:
    before = stamps(tmp_path)
    (tmp_path / "secret").write_text("secret")
    artifact_io.write(tmp_path / "verdict.json", verdict("pass", 0))
    (tmp_path / "report.md").symlink_to(tmp_path / "secret")
    assert read_results(tmp_path, before, 0).markdown == ""


def test_a_finding_stands_at_its_model_and_a_loosened_rule_at_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gate.yaml").write_text("models: []\ngate:\n  margin-percent: 9\n")
    out = tmp_path / "out"
    slow = finding("fail", "slower", model="models/a.onnx@small")
    rule = PolicyChange(
        key="gate.margin-percent", old="3", new="9", effect="loosened", counts="once merged"
    )
    waivers = msgspec.structs.replace(rule, key="waivers.yaml")
    found = verdict("fail", 1, slow, policy_changes=(rule, waivers))
    artifact_io.write(out / "verdict.json", found)
    Path("waivers.yaml").write_text("[]")
    shown = read_results(out, {}, 1).annotations(Path(), Path("gate.yaml"))
    assert [(each.file, each.line) for each in shown] == [
        ("gate.yaml", 3),
        ("waivers.yaml", 1),
        ("models/a.onnx", 1),
    ]
    inside = read_results(out, {}, 1).annotations(Path("sub"), Path("missing.yaml"))
    assert [(each.file, each.line) for each in inside] == [
        ("", 0),
        ("", 0),
        ("sub/models/a.onnx", 1),
    ]


def test_an_error_that_got_larger_for_nothing_is_a_warning_at_its_model(
    tmp_path: Path,
) -> None:
    out = tmp_path
    moved = ShippedErrors(base=BEFORE, head=AFTER, moved=("max-error",))
    found = verdict("pass", 0, finding("pass", "why", model="models/a.onnx", accuracy=moved))
    artifact_io.write(out / "verdict.json", found)
    (shown,) = read_results(out, {}, 0).annotations(Path(), Path("gate.yaml"))
    assert (shown.level, shown.title) == ("warning", "tunegate: error-moved")
    assert (shown.file, shown.line) == ("models/a.onnx", 1)
    assert shown.text.startswith("models/a.onnx on cpu: the max-error of what ships rose from")
