"""Commands of a user, one after the other, with the time of each."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

_INDEX = r"LANG|PIP_|UV_|SSL_|REQUESTS_CA|CURL_CA|(HTTPS?|NO|ALL)_PROXY"
_REACHES_AN_INDEX = re.compile(_INDEX, re.IGNORECASE)
"""The variables that a user has, too: without them no package index answers here."""


class Step(msgspec.Struct, frozen=True):
    """One command, and how it ended. `processor_seconds` are those of all that it started;
    `last_line` is the last one that it said."""

    what: str
    seconds: float
    processor_seconds: float
    exit_code: int
    wanted: tuple[int, ...]
    last_line: str

    @property
    def went_well(self) -> bool:
        return self.exit_code in self.wanted


class Walk:
    """The way of one user: `home` is empty at its start, and nothing of the caller's leaks in."""

    def __init__(self, name: str, place: Path, path: Sequence[Path] = ()) -> None:
        self.name = name
        self.steps: list[Step] = []
        self.place = place
        place.mkdir(parents=True)
        home = place / ".home"
        home.mkdir()
        kept = {key: value for key, value in os.environ.items() if _REACHES_AN_INDEX.match(key)}
        parts = [*map(str, path), os.environ["PATH"]]
        self._variables = {**kept, "HOME": str(home), "PATH": os.pathsep.join(parts)}

    def walk(
        self,
        what: str,
        *command: str,
        at: Path | None = None,
        wanted: Sequence[int] = (0,),
        variables: Mapping[str, str] | None = None,
    ) -> Step:
        """Runs it, and keeps all that it says beside the place. Raises SystemExit where it ends
        otherwise than wanted."""
        log = self.place / f"{len(self.steps) + 1:02d}.log"
        started, used = time.monotonic(), _used_by_children()
        with log.open("w") as said:
            done = subprocess.run(
                command,
                cwd=at or self.place,
                env={**self._variables, **(variables or {})},
                stdout=said,
                stderr=subprocess.STDOUT,
                check=False,
            )
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
        last = next((line for line in reversed(lines) if line), "")
        seconds = time.monotonic() - started
        used = _used_by_children() - used
        step = Step(what, seconds, used, done.returncode, tuple(wanted), last)
        self.steps.append(step)
        print(f"{self.name}: {what}: {step.seconds:.0f} s", file=sys.stderr, flush=True)
        if not step.went_well:
            print(log.read_text(errors="replace")[-3000:], file=sys.stderr)
            raise SystemExit(f"{self.name}: {what}: exit {step.exit_code}, see {log}")
        return step

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps)


def _used_by_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
