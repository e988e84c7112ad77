from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tunegate import errors
from tunegate.cli import entry


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
