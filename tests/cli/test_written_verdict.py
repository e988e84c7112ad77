from contextlib import redirect_stdout, suppress
from pathlib import Path

import pytest

from tests.support.report_parts import finding, verdict
from tests.support.workspace import Workspace
from tunegate.artifacts import artifact_io
from tunegate.artifacts.verdicts import Status
from tunegate.cli.main import as_written, main
from tunegate.cli.parse import Parsed, parse
from tunegate.errors import TunegateError

JUDGING = {"run": [], "gate": [], "compare": ["a", "b"], "confirm": ["a", "b"]}


def line_of(out: Path, command: str) -> Parsed:
    return parse([command, f"--out={out}", *JUDGING.get(command, [])])


def written(out: Path, status: Status, exit_code: int) -> None:
    artifact_io.write(out / "verdict.json", verdict(status, exit_code, finding(status, "why")))


@pytest.mark.parametrize("command", JUDGING)
def test_a_command_that_judges_ends_as_its_verdict_says(tmp_path: Path, command: str) -> None:
    written(tmp_path, "fail", 1)
    assert as_written(1, line_of(tmp_path, command)) == 1
    written(tmp_path, "pass", 0)
    assert as_written(0, line_of(tmp_path, command)) == 0
    for other in (1, 3):
        with pytest.raises(TunegateError, match=f"exit code {other}, but the written verdict is"):
            as_written(other, line_of(tmp_path, command))


@pytest.mark.parametrize("exit_code", [0, 1])
def test_without_a_verdict_nothing_is_green_and_nothing_is_a_regression(
    tmp_path: Path, exit_code: int
) -> None:
    with pytest.raises(TunegateError, match="a bug of tunegate") as caught:
        as_written(exit_code, line_of(tmp_path, "run"))
    assert caught.value.exit_code == 70


@pytest.mark.parametrize(("status", "exit_code"), [("pass", 1), ("error", 1), ("fail", 0)])
def test_only_a_verdict_that_fails_is_a_regression(
    tmp_path: Path, status: Status, exit_code: int
) -> None:
    written(tmp_path, status, exit_code)
    with pytest.raises(TunegateError, match="a bug of tunegate"):
        as_written(exit_code, line_of(tmp_path, "run"))


def test_a_command_that_judges_nothing_never_ends_with_a_regression(tmp_path: Path) -> None:
    written(tmp_path, "fail", 1)
    with pytest.raises(TunegateError, match="doctor judges nothing"):
        as_written(1, line_of(tmp_path, "doctor"))
    assert as_written(4, line_of(tmp_path, "doctor")) == 4


def test_a_run_that_fails_after_its_verdict_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Workspace(tmp_path / "w").root)
    run, written_files = ["run", "--base=HEAD", "--head=HEAD", "--json"], Path(".tunegate").glob
    assert main(run) == 0
    assert {"verdict.json", "report.md"} <= {each.name for each in written_files("*")}
    with suppress(OSError), Path("/dev/full").open("w") as full, redirect_stdout(full):
        assert main(run) == 4
    assert not [*written_files("verdict.json"), *written_files("report.*")]
