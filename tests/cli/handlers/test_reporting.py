from __future__ import annotations

import io
import json
import re
from pathlib import Path

import msgspec
import pytest

from tests.support import reports
from tests.support.measured_cells import make_changes
from tunegate.artifacts import artifact_io
from tunegate.artifacts.changes import ChangeSet
from tunegate.artifacts.verdicts import WarmedModel
from tunegate.cli.handlers.doctor import Diagnosis, show_diagnosis
from tunegate.cli.handlers.doctor_checks import GatedModel, Setting
from tunegate.cli.handlers.reporting import finish, write_json, write_renderings
from tunegate.cli.handlers.table import Output, show_lines, show_table
from tunegate.settings import Settings
from tunegate.system.machine.health_check import HealthCheck
from tunegate.system.output.log_file import talking

REPORT = reports.slowed()


def test_a_report_is_written_in_all_its_forms(tmp_path: Path) -> None:
    write_renderings(REPORT, tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"report.md", "report.html", "junit.xml", "sarif.json"} <= names


@pytest.mark.parametrize("exit_code", [0, 1, 3])
def test_the_exit_code_is_that_of_the_verdict(tmp_path: Path, exit_code: int) -> None:
    verdict = msgspec.structs.replace(REPORT.verdict, exit_code=exit_code)
    report = msgspec.structs.replace(REPORT, verdict=verdict)
    assert finish(report, Settings(out=tmp_path)) == exit_code


def test_talk_goes_to_stderr_and_only_json_that_was_asked_for_to_stdout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finish(REPORT, Settings(out=tmp_path))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert str(tmp_path / "report.html") in shown.err
    finish(REPORT, Settings(out=tmp_path, as_json=True))
    assert json.loads(capsys.readouterr().out)["status"] == REPORT.verdict.status


@pytest.mark.parametrize(
    ("quiet", "exit_code", "lines"), [(True, 1, 1), (True, 0, 0), (False, 1, 0)]
)
def test_a_quiet_command_says_what_its_exit_code_is_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, quiet: bool, exit_code: int, lines: int
) -> None:
    verdict = msgspec.structs.replace(REPORT.verdict, exit_code=exit_code)
    with talking() as talk:
        talk.begin(quiet=quiet, verbose=False, log=None)
        finish(msgspec.structs.replace(REPORT, verdict=verdict), Settings(out=tmp_path))
    shown = capsys.readouterr().err
    told = [line for line in shown.splitlines() if line.startswith("tunegate: fail: ")]
    assert len(told) == lines
    assert (len(shown.splitlines()) == lines) == quiet


def test_what_was_sent_to_a_pipe_is_read_like_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_json(make_changes())
    file = tmp_path / "changes.json"
    file.write_text(capsys.readouterr().out)
    assert artifact_io.read(file, ChangeSet) == make_changes()


DIAGNOSIS = Diagnosis(
    checks=(
        HealthCheck("cache", ok=False, detail="/tmp/[/b]: install tunegate[tvm]", section="cache"),
        HealthCheck("python", ok=True, detail="3.12.1", section="machine"),
        HealthCheck("load", ok=True, detail="load 8.0: wait", section="machine", warns=True),
        HealthCheck("tvm", ok=True, detail="apache-tvm 9", section="runtimes"),
        HealthCheck("linker", ok=True, detail="/usr/bin/g++", section="runtimes"),
        HealthCheck("shapes", ok=True, detail="all have a size", section="models"),
    ),
    settings=(Setting("gate.seconds", "240.0", "default"), Setting("dims.n", "3", "file")),
    models=(
        GatedModel(
            model="[red].onnx",
            entry="*.onnx",
            targets=("cpu", "gpu"),
            state="committed",
            tasks=(
                WarmedModel(model="[red].onnx", target="cpu", tasks=3, known_before=1, known=1),
            ),
        ),
    ),
)


def test_what_is_wrong_is_said_last_and_nothing_is_markup(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_diagnosis(DIAGNOSIS, is_whole=False)
    shown = capsys.readouterr().out
    assert shown.index("all have a size") < shown.index("/tmp/[/b]: install tunegate[tvm]")
    assert shown.endswith(
        "-v shows each check, 1 model, 2 settings\n"
        "2 tasks are untuned: tunegate warm tunes what matters\n"
        "to mend: cache\n"
    )


def test_a_part_that_is_fine_is_one_line_and_a_warning_stands_among_what_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_diagnosis(DIAGNOSIS, is_whole=False)
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    parts, rest = lines[2:5], lines[5:]
    assert [" ".join(line.split()) for line in parts] == [
        "machine ok python 3.12.1",
        "runtimes ok tvm, linker",
        "models ok 1 model, 1 of 3 tasks tuned; shapes all have a size",
    ]
    assert [line.split()[:2] for line in rest if line[:4] in ("cach", "load")] == [
        ["cache", "no"],
        ["load", "warn"],
    ]
    assert "[red].onnx" not in "".join(lines)


def test_the_last_line_agrees_with_those_above_it_and_no_line_is_too_wide(
    capsys: pytest.CaptureFixture[str],
) -> None:
    slow = HealthCheck("load", ok=True, detail="8.0: wait " * 30, section="machine", warns=True)
    absent = HealthCheck(
        "openvino", ok=True, detail="optional: pip", section="runtimes", is_absent=True
    )
    show_diagnosis(Diagnosis(checks=(DIAGNOSIS.checks[1],)), is_whole=False)
    assert capsys.readouterr().out.splitlines()[-1] == "All is well."
    show_diagnosis(Diagnosis(checks=(slow, absent)), is_whole=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "All works; better with a look at: load"
    assert max(map(len, lines)) <= 100
    assert [line.split() for line in lines if "openvino" in line] == [
        ["runtimes", "absent", "openvino:", "optional,", "not", "installed"]
    ]


def test_models_that_are_not_as_committed_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    (model,) = DIAGNOSIS.models
    changed = msgspec.structs.replace(model, state="not committed yet")
    show_diagnosis(msgspec.structs.replace(DIAGNOSIS, models=(changed,)), is_whole=False)
    assert "[red].onnx" in capsys.readouterr().out


class Closed(io.StringIO):
    """A pipe whose reader has gone away."""

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_reader_that_has_gone_away_does_not_end_the_process() -> None:
    with pytest.raises(BrokenPipeError):
        Output(file=Closed()).print("a line")


def test_a_cell_from_a_store_is_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    show_table("[b]title", ("column",), [("[red]record[/red]",)])
    show_lines(["[link=x]line[/link]"])
    shown = capsys.readouterr().out
    assert "[red]record[/red]" in shown
    assert "[link=x]line[/link]" in shown


WIDE = ("models/encoder.onnx", "cpu: a processor with a long name", 230, 77, "x" * 20)


@pytest.mark.parametrize("width", [40, 80])
def test_a_narrow_terminal_gets_lines_and_no_word_is_folded(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    show_table("", ("model", "target", "records", "tasks", "digest"), [WIDE])
    show_table(
        "", ("check", "detail"), [("cache", "a place that holds nothing of ours yet, it says")]
    )
    shown = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    words = {word for line in shown.splitlines() for word in line.replace(",", " ").split()}
    assert {"models/encoder.onnx", "processor", "x" * 20, "nothing"} <= words
    assert max(map(len, shown.splitlines())) <= width
