import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tunegate
from tests.support.programs import run_program
from tests.support.workspace import Workspace
from tunegate import errors
from tunegate.cli import entry
from tunegate.cli import main as cli
from tunegate.cli.supported_machine import Machine, why_unsupported
from tunegate.cli.unexpected import explain_error


@pytest.mark.parametrize(
    "line",
    [["help", "fly"], ["fly"], ["cache"], ["run", "--nope"], ["detect", "--repository", "/"]],
)
def test_a_usage_error_is_one_line_without_a_traceback(
    line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(line) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("tunegate: error: ")
    assert shown.err.count("\n") == 1
    assert shown.out == ""


def test_a_bug_is_one_line_with_a_log_and_its_own_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "page", lambda _: 1 / 0)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert cli.main(["run"]) == 70
    shown = capsys.readouterr().err
    assert "a bug of tunegate (ZeroDivisionError" in shown
    log = Path(shown.partition("with the log ")[2].strip().rstrip("."))
    assert "Traceback" in log.read_text()
    log.unlink()


def test_an_early_error_waits_for_no_compiler_and_no_statistics(tmp_path: Path) -> None:
    heavy = "('tvm', 'scipy.stats', 'shtab')"
    script = (
        "import sys; import tunegate.report.html; "
        "from tunegate.cli.main import main; print(main(['run'])); "
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    done = run_program([sys.executable, "-c", script], cwd=tmp_path, check=True)
    assert done.stdout.splitlines() == ["2", "[]"]


@pytest.mark.parametrize("end", [lambda _: 0, lambda _: 1, lambda _: sys.exit(0)])
def test_a_command_that_judges_without_a_verdict_is_a_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: Callable[[object], int]
) -> None:
    monkeypatch.setattr(cli, "_handler", lambda _: end)
    assert cli.main(["run", "--out", str(tmp_path)]) == 70


@pytest.mark.parametrize("where", ["page", "_carry_out"])
def test_an_interrupt_is_cancelled_and_names_no_folder_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, where, interrupted)
    line = ["run", "--out", str(tmp_path / "out")]
    assert cli.main(line) == 130
    assert "/out" not in capsys.readouterr().err
    (tmp_path / "out").mkdir()
    cli.main(line)
    assert ("/out" in capsys.readouterr().err) == (where == "_carry_out")


def test_quiet_leaves_the_product_and_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path / "w")
    line = ["detect", "-q", "--repository", str(workspace.root), "--out", str(tmp_path / "out")]
    assert cli.main([*line, "--json"]) == 0
    shown = capsys.readouterr()
    assert '"kind": "added"' in shown.out
    assert shown.err == ""
    assert cli.main([*line, "--base", "nowhere"]) == 2
    assert capsys.readouterr().err.startswith("tunegate: error: ")


def test_the_log_file_tells_the_command_the_error_and_its_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "hunter2-hunter2")
    log = tmp_path / "log"
    line = ["detect", "--repository", str(tmp_path / "hunter2-hunter2"), "--log-file", str(log)]
    assert cli.main(line) == 2
    assert capsys.readouterr().err.count("\n") == 1
    text = log.read_text()
    assert "detect --repository" in text
    assert "Traceback" in text
    assert "tunegate: error: " in text
    assert text.endswith("exit code 2\n")
    assert "hunter2" not in text


def test_a_log_file_that_cannot_be_written_stops_the_command_before_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path / "w")
    log = tmp_path / "nowhere" / "log"
    out = tmp_path / "out"
    line = ["detect", "--repository", str(workspace.root), "--out", str(out), f"--log-file={log}"]
    assert cli.main(line) == 2
    assert "--log-file" in capsys.readouterr().err
    assert not out.exists()


def test_a_bug_is_reported_with_the_log_file_where_there_is_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "_handler", lambda _: lambda _: 1 / 0)
    assert cli.main(["doctor", "--log-file", str(tmp_path / "log")]) == 70
    assert f"with the log {tmp_path / 'log'}." in capsys.readouterr().err
    assert "ZeroDivisionError" in (tmp_path / "log").read_text()


def test_an_error_shows_no_password(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", "hunter2-hunter2")
    assert cli.main(["s3://me:p@ss@host/hunter2-hunter2", "-v"]) == 2
    shown = capsys.readouterr().err
    assert "s3://***@host/***" in shown
    assert "hunter2" not in shown
    assert "p@ss" not in shown


def test_a_traceback_draws_nothing_and_begins_no_line_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["rum\x1b[31m\r\n::error::pwned", "-v"]) == 2
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert "\x1b" not in shown
    assert not any(line.startswith("::") for line in shown.splitlines())


def test_a_job_of_a_ci_is_refused_as_its_event_says_without_being_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITLAB_CI", "true")
    monkeypatch.setenv("CI_PIPELINE_SOURCE", "chat")
    line = ["run", "--repository", str(tmp_path)]
    assert cli.main(line) == 2
    assert "event chat is refused" in capsys.readouterr().err
    assert cli.main([*line, "--ci", "none"]) == 2
    assert "not a git repository" in capsys.readouterr().err


def raising(error: BaseException) -> Callable[[], int]:
    def program() -> int:
        raise error

    return program


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4, 5, 70, 130])
def test_a_programs_own_exit_code_is_kept(code: int) -> None:
    assert entry.run_guarded(lambda: code, pytest.fail) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (SystemExit(1), 70),
        (SystemExit(0), 70),
        (ImportError("x"), 4),
        (BaseException(), 70),
    ],
)
def test_whatever_a_program_raises_is_said_in_one_line_and_is_never_a_regression(
    error: BaseException, code: int
) -> None:
    said: list[str] = []
    assert entry.run_guarded(raising(error), said.append) == code
    assert len(said) == 1


def unsayable(_: str) -> None:
    raise BrokenPipeError


def test_where_nothing_can_be_said_the_exit_code_tells() -> None:
    assert entry.run_guarded(raising(MemoryError()), unsayable) == 4


def test_the_exit_code_of_a_damaged_installation_is_that_of_the_contract() -> None:
    assert errors.UNFIT == entry._UNFIT


BUFFERED = "__import__('sys').stdout.reconfigure(write_through=False)"
GIVEN_UP = "__import__('tunegate.cli.main').cli.main.give_up_lost_output()"
ENDS = "from tunegate.cli.entry import leave; leave(lambda: {program}, print)"


@pytest.mark.parametrize(
    ("program", "redirected", "codes"),
    [
        ("print('product') or 0", ">/dev/full", {4}),
        ("print('product') or 3", ">/dev/full", {3, 4}),
        ("print('product') or 0", ">&-", {0}),
        ("__import__('sys').stderr.write('talk') and 0", "2>&-", {0}),
        ("__import__('sys').stderr.write('talk') and 0", "2>/dev/full", {0, 4}),
        ("print('x' * 10**6) or 0", "| head -c 1 >/dev/null", {4}),
        (f"{BUFFERED} or print('note') or {GIVEN_UP} or 0", ">/dev/full", {0}),
        (f"{BUFFERED} or print('note') or {GIVEN_UP} or 1", ">/dev/full", {1}),
    ],
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_is_gone_is_no_regression_and_makes_no_product_a_pass(
    program: str, redirected: str, codes: set[int], unbuffered: str
) -> None:
    """Python itself ends with 120 or 1 where its last words cannot be written. In a CI's job they
    are no product: the verdict has been told."""
    script = ENDS.format(program=program)
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f'"{sys.executable}" -c "{script}" {redirected}'],
        env={"PYTHONUNBUFFERED": unbuffered, "PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert done.returncode in codes


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_name_with_any_character_is_shown_on_any_stream(tmp_path: Path, encoding: str) -> None:
    where = ["--repository", str(tmp_path), "--cache-url", str(tmp_path / "\u65e5")]
    command = [sys.executable, "-m", "tunegate", "cache", "stats", *where]
    variables = {**os.environ, "PYTHONIOENCODING": encoding}
    subprocess.run(command, env=variables, check=True, capture_output=True)
    done = subprocess.run([*command, "--json"], env=variables, check=True, capture_output=True)
    assert json.loads(done.stdout)["location"] == str(tmp_path / "\u65e5")


def test_a_cancel_inside_an_executed_string_ends_with_its_own_exit_code(tmp_path: Path) -> None:
    """`python -m` would end by SIGINT."""
    module = ENDS.format(program="exec('raise KeyboardInterrupt')")
    (tmp_path / "cancelled.py").write_text(module)
    done = subprocess.run([sys.executable, "-m", "cancelled"], cwd=tmp_path, check=False)
    assert done.returncode == errors.CANCELLED


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "exit_code", "said"),
    [
        (KeyboardInterrupt(), 130, "cancelled"),
        (ModuleNotFoundError("No module named 'msgspec'"), 4, "damaged (ModuleNotFoundError: No"),
        (SyntaxError("invalid syntax"), 4, "damaged"),
        (BrokenPipeError(32, "Broken pipe"), 4, "gone away"),
        (MemoryError(), 4, "out of memory"),
        (RuntimeError("can't start new thread"), 4, "lets no thread start"),
        (BlockingIOError(11, "Resource temporarily unavailable"), 4, "Raise ulimit -u"),
        (OSError(24, "Too many open files", "/x"), 4, "open files: '/x'. Raise ulimit -n."),
        (ImportError("m.so: failed to map segment from shared object"), 4, "Raise ulimit -v"),
        (PermissionError(13, "Permission denied", "/x"), 4, "Permission denied: '/x'"),
        (OSError(36, "File name too long", "/xx"), 2, "longer than this machine takes"),
        (RecursionError("too deep\nand more"), 70, "a bug of tunegate (RecursionError: too deep)"),
        (SystemExit("text"), 70, "a bug of tunegate (SystemExit: text)"),
        (SystemExit(0), 70, "a bug"),
        (GeneratorExit(), 70, "a bug"),
        (Unspeakable(), 70, "a bug of tunegate (Unspeakable)"),
    ],
)
def test_everything_has_an_exit_code_that_is_neither_a_pass_nor_a_regression(
    error: BaseException, exit_code: int, said: str
) -> None:
    ending = explain_error(error)
    assert ending.exit_code == exit_code
    assert said in ending.problem
    assert "\n" not in ending.problem


def test_what_fails_while_a_cancel_is_cleaned_up_is_the_cancel() -> None:
    with pytest.raises(OSError, match="gone") as caught:
        cancelled_on_a_lost_terminal()
    assert explain_error(caught.value).exit_code == 130


def cancelled_on_a_lost_terminal() -> None:
    try:
        raise KeyboardInterrupt
    finally:
        raise OSError(5, "the terminal is gone")


USUAL = Machine("Linux", "x86_64", "glibc", (3, 11), is_64_bit=True)


@pytest.mark.parametrize("processor", ["x86_64", "AMD64", "aarch64", "arm64"])
def test_linux_on_both_processors_is_supported(processor: str) -> None:
    assert why_unsupported(USUAL._replace(processor=processor, python=(3, 14))) == ""


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (USUAL._replace(system="Darwin", processor="arm64", libc=""), "macOS is not supported"),
        (USUAL._replace(system="Windows", processor="AMD64"), "Windows is not supported"),
        (USUAL._replace(system=""), "this system is not supported"),
        (USUAL._replace(processor="riscv64"), "the processor riscv64 is not supported"),
        (USUAL._replace(processor=""), "the processor of this machine is not supported"),
        (USUAL._replace(processor="i686"), "the processor i686 is not supported"),
        (USUAL._replace(libc=""), "a Linux without glibc (musl, as in Alpine) is not supported"),
        (USUAL._replace(is_64_bit=False), "a 32-bit Python is not supported"),
        (USUAL._replace(python=(3, 10)), "Python 3.10 is not supported"),
        (USUAL._replace(python=(3, 15)), "Python 3.15 is not supported"),
        (USUAL._replace(libc_version="2.27"), "glibc 2.27 is not supported"),
        (USUAL._replace(kind="PyPy"), "PyPy is not supported"),
        (USUAL._replace(has_gil=False), "a CPython without the GIL is not supported"),
    ],
)
def test_any_other_is_named_with_what_is_supported(machine: Machine, said: str) -> None:
    problem = why_unsupported(machine)
    assert problem.startswith(said)
    assert "Linux with glibc 2.28 or newer on x86-64 or arm64, and a 64-bit CPython 3.11" in problem


@pytest.mark.parametrize("version", [(3, 6), (3, 8)])
def test_an_older_python_ends_with_what_is_needed(version: tuple[int, int]) -> None:
    """It reads the first file of the command, so that one may have no newer syntax."""
    first = Path(tunegate.__file__).with_name("__main__.py")
    ast.parse(first.read_text(), feature_version=version)
    assert "from __future__" not in first.read_text()
    old = f"import runpy, sys; sys.version_info = ({version[0]}, {version[1]}, 10, 'final', 0)"
    run = f"{old}; runpy.run_path({str(first)!r}, run_name='__main__')"
    done = run_program([sys.executable, "-c", run], code=4)
    needed = f"tunegate needs Python 3.11 or newer, and this is {version[0]}.{version[1]}"
    assert done.stderr == f"tunegate: error: {needed}\n"
