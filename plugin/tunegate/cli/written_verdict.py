"""The exit code of a command that judges is that of the verdict it wrote: nothing else can be
green, and nothing else can be a regression."""

from __future__ import annotations

from tunegate.artifacts import artifact_io
from tunegate.artifacts.verdicts import Verdict
from tunegate.cli.parse import Parsed
from tunegate.errors import (
    FAIL,
    ArtifactError,
    TunegateError,
)


def as_written(exit_code: int, asked: Parsed) -> int:
    """The same code. Raises TunegateError, a bug of ours, where no written verdict says it."""
    if not asked.command.judges:
        if exit_code == FAIL:
            raise TunegateError(_bug(exit_code, f"{asked.command.name} judges nothing"))
        return exit_code
    try:
        verdict = artifact_io.read(asked.options.common.out / "verdict.json", Verdict)
    except ArtifactError as error:
        raise TunegateError(_bug(exit_code, str(error))) from error
    if verdict.exit_code != exit_code or (exit_code == FAIL) != (verdict.status == "fail"):
        said = f"the written verdict is {verdict.status}, exit code {verdict.exit_code}"
        raise TunegateError(_bug(exit_code, said))
    return exit_code


def _bug(exit_code: int, why: str) -> str:
    return f"a bug of tunegate (exit code {exit_code}, but {why}). Please report it."
