"""An implementation of `ports.Scorer` over a command of the user's."""

from __future__ import annotations

from pathlib import Path

from tunegate.bench_ports import Scorer
from tunegate.edges.processes.user_command import output_of, printed_number
from tunegate.errors import MeasurementError


class ScoringCommand:
    """The command gets an artifact's directory as its last argument and prints
    the score in its last line."""

    def __init__(self, line: str) -> None:
        self._line = line

    def score(self, artifact: Path) -> float:
        lines = output_of(self._line, str(artifact)).split()
        score = printed_number(lines[-1]) if lines else None
        if score is None:
            message = f"`{self._line}` printed no number at its end"
            raise MeasurementError(message)
        return score


_: type[Scorer] = ScoringCommand
