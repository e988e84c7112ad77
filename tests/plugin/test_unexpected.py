from __future__ import annotations

import pytest

from tunegate.unexpected import explained, named


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


def test_without_git_that_is_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for error in (ImportError("Bad git executable."), FileNotFoundError(2, "No such file", "git")):
        assert explained(error) == (4, "git is not on the PATH. Install it.")


def test_a_long_text_is_cut() -> None:
    assert len(named(ValueError("x" * 10_000))) < 400
