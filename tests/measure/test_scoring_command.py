from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tunegate.errors import MeasurementError
from tunegate.measure.latency_commands import ScoringCommand


def scored(program: str, directory: Path) -> float:
    return ScoringCommand(f'{sys.executable} -c "{program}"').score(directory)


def test_the_last_number_counts_and_the_artifact_is_the_last_argument(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("0.75")
    program = "import sys; print(1); print(open(sys.argv[-1] + '/x').read())"
    assert scored(program, tmp_path) == 0.75


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("pass", "printed no number"),
        ("print('nan')", "printed no number"),
        ("print('good')", "printed no number"),
        ("raise SystemExit('boom')", "exited with 1: boom"),
    ],
)
def test_a_command_that_gives_no_number_says_so(program: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match=said):
        scored(program, tmp_path)


def test_a_command_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="cannot be run"):
        ScoringCommand("no-such-program --x").score(tmp_path)
