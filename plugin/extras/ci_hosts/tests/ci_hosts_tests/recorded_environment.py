"""The environments of jobs that tests/recorded/ci_environments holds."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).resolve().parent / "recorded"
HEAD, MERGE, BEFORE, MAIN = "a" * 40, "e" * 40, "b" * 40, "c" * 40


def recorded_environment(
    name: str, *, head: str = HEAD, merge: str = MERGE, before: str = BEFORE, main: str = MAIN
) -> dict[str, str]:
    """The variables of a job, about these commits."""
    text = (_FOLDER / f"{name}.env").read_text()
    commits = {"HEAD": head, "MERGE": merge, "BEFORE": before, "SHORT_MAIN": main[:12]}
    for mark, commit in commits.items():
        text = text.replace(f"@{mark}@", commit)
    return dict(line.split("=", 1) for line in text.splitlines())
