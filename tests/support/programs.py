"""Programs of other people that some tests need. Where one is missing these are skipped."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest
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


def npm_ci(sources: Iterable[Path], directory: Path) -> Path:
    """The directory, with the sources and `node_modules`, exactly as the lock file of the sources
    has it. Skips the test where npm cannot install the packages."""
    require("npm")
    for source in sources:
        shutil.copy(source, directory)
    done = run_program(
        ["npm", "ci", "--no-audit", "--no-fund", "--silent"],
        cwd=directory,
        env={**os.environ, "HOME": str(directory)},
    )
    if done.returncode:
        pytest.skip(f"npm ci does not work here: {done.stderr.strip()[-200:]}")
    return directory


def run_program(
    line: Sequence[str | Path],
    *,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    check: bool = False,
    code: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Returns the ended program, with its exit code and all that it wrote, as text. Fails the test
    where it ends with another code than the given one."""
    done = subprocess.run(line, cwd=cwd, env=env, check=check, capture_output=True, text=True)
    assert code in (None, done.returncode), (
        f"exit code {done.returncode}: {done.stdout}{done.stderr}"
    )
    return done


def shell_program(path: Path, script: str) -> Path:
    """The path, where a program with this text now is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
