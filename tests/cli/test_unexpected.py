from __future__ import annotations

import pytest

from tunegate.cli.unexpected import explained, named


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


def test_a_long_text_is_cut() -> None:
    assert len(named(ValueError("x" * 10_000))) < 400
