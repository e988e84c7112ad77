"""Workers that die before anything has run say something about the machine, not the candidates."""

from __future__ import annotations

from pathlib import Path

from tunegate.engine.protocol import Measured
from tunegate.errors import EnvironmentUnfitError

_DEATHS_OF_A_BROKEN_MACHINE = 4


class BrokenMachineWatch:
    """Sees every result of a run; `log` is what the workers have written."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._deaths = self._measured = 0

    def see(self, measured: Measured) -> None:
        """Raises EnvironmentUnfitError once so many workers have died and nothing has run."""
        self._measured += measured.status == "ok"
        self._deaths += measured.has_killed_worker
        if not self._measured and self._deaths >= _DEATHS_OF_A_BROKEN_MACHINE:
            last = self._log.read_text(errors="replace").strip().splitlines()[-1:]
            message = (
                "the build workers do not start here "
                f"({' '.join(last)[:300]}). Run tunegate doctor; their log is {self._log}."
            )
            raise EnvironmentUnfitError(message)
