"""Programs of other people that some tests need. Where one is missing these are skipped."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from _pytest.outcomes import Skipped

_LIST = Path(__file__).resolve().parents[2] / "requirements" / "programs.txt"


class MissingProgramsError(Skipped):
    """The test is skipped; `packages` are what has to be installed for it."""

    def __init__(self, programs: Sequence[str]) -> None:
        known = packages()
        super().__init__(f"not installed: {', '.join(programs)}")
        self.packages = tuple(dict.fromkeys(known[program] for program in programs))


def packages() -> dict[str, str]:
    """The package of each program."""
    lines = [line.split() for line in _LIST.read_text().splitlines() if not line.startswith("#")]
    return dict(lines)


def require(*programs: str) -> None:
    """Skips the test where one of them is not on the PATH."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        raise MissingProgramsError(missing)
