from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tunegate
from tunegate import errors
from tunegate.cli import entry
from tunegate.cli.supported_machine import Machine, why_unsupported
from tunegate.cli.unexpected import explained


def raising(error: BaseException) -> Callable[[], int]:
    def program() -> int:
        raise error

    return program


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4, 5, 70, 130])
def test_a_programs_own_exit_code_is_kept(code: int) -> None:
    assert entry.guarded(lambda: code, pytest.fail) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (SystemExit(1), 70),
        (SystemExit("text"), 70),
        (SystemExit(0), 70),
        (ImportError("x"), 4),
        (ZeroDivisionError(), 70),
        (BaseException(), 70),
    ],
)
def test_whatever_a_program_raises_is_said_in_one_line_and_is_never_a_regression(
    error: BaseException, code: int
) -> None:
    said: list[str] = []
    assert entry.guarded(raising(error), said.append) == code
    assert len(said) == 1


def unsayable(_: str) -> None:
    raise BrokenPipeError


def test_where_nothing_can_be_said_the_exit_code_still_tells() -> None:
    assert entry.guarded(raising(MemoryError()), unsayable) == 4


def test_the_exit_code_of_a_damaged_installation_is_that_of_the_contract() -> None:
    assert errors.UNFIT == entry._UNFIT


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
    ],
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_is_gone_is_no_regression_and_makes_no_product_a_pass(
    program: str, redirected: str, codes: set[int], unbuffered: str
) -> None:
    """Python itself ends with 120 or 1 where its last words cannot be written."""
    script = ENDS.format(program=program)
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f'"{sys.executable}" -c "{script}" {redirected}'],
        env={"PYTHONUNBUFFERED": unbuffered, "PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert done.returncode in codes


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
    ending = explained(error)
    assert ending.exit_code == exit_code
    assert said in ending.problem
    assert "\n" not in ending.problem


def test_what_fails_while_a_cancel_is_cleaned_up_is_the_cancel() -> None:
    with pytest.raises(OSError, match="gone") as caught:
        cancelled_on_a_lost_terminal()
    assert explained(caught.value).exit_code == 130


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
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    needed = f"tunegate needs Python 3.11 or newer, and this is {version[0]}.{version[1]}"
    assert done.stderr == f"tunegate: error: {needed}\n"
