"""The first Python of the action: standard library only.

Finds or makes the locked environment and execs `tunegate_action` in it, so that the runner's signals
reach the process that does the work. `clean-up` is the step that always runs.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
SOURCES = ("action", "plugin", "cache")
USAGE, UNFIT = 2, 4
DRIVER = Path("/proc/driver/nvidia/version")


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    if arguments == ["clean-up"]:
        return clean_up(Path(environment.get("TUNEGATE_OUT", ".tunegate")))
    if sys.version_info < OLDEST:
        found = platform.python_version()
        return fail(f"Python {found} is too old; 3.11 is needed. Set the input python.", USAGE)
    lock = lock_for(environment)
    try:
        python = environment_for(lock, cache_directory(environment), environment)
    except subprocess.CalledProcessError as error:
        return fail(f"the environment could not be installed: {last_line(error.stderr)}", UNFIT)
    except OSError as error:
        return fail(f"the environment could not be written: {error}", UNFIT)
    os.execve(python, [str(python), "-P", "-m", "tunegate_action"], with_sources(environment))
    return UNFIT


def lock_for(environment: Mapping[str, str], driver: Path = DRIVER) -> Path:
    """What a GPU needs is 200 MB that other machines do not."""
    usual = "gpu.lock" if driver.exists() else "run.lock"
    return Path(environment.get("TUNEGATE_LOCK") or ROOT / "requirements" / usual)


def environment_for(lock: Path, cache: Path, environment: Mapping[str, str]) -> Path:
    """The interpreter of an environment that has exactly what the lock says; made once, by whoever
    comes first, under a name that says what is in it."""
    directory = cache / key_of(lock)
    python = directory / "bin" / "python"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{directory.name}.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not (directory / ".complete").exists():
            shutil.rmtree(directory, ignore_errors=True)
            install(lock, directory, environment)
            (directory / ".complete").touch()
    return python


def install(lock: Path, directory: Path, environment: Mapping[str, str]) -> None:
    """A virtual environment knows its own path, so it is made in place; `.complete` comes last."""
    quiet("-m", "venv", str(directory), python=sys.executable)
    wheelhouse = environment.get("TUNEGATE_WHEELHOUSE", "")
    source = ["--no-index", "--find-links", wheelhouse] if wheelhouse else []
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    quiet(*pip, *source, "-r", str(lock), python=str(directory / "bin" / "python"))


def quiet(*arguments: str, python: str) -> None:
    subprocess.run([python, "-I", *arguments], check=True, stderr=subprocess.PIPE, text=True)


def key_of(lock: Path) -> str:
    parts = (lock.read_bytes(), platform.python_version().encode(), platform.machine().encode())
    return hashlib.sha256(b"\0".join((*parts, sys.executable.encode()))).hexdigest()[:32]


def cache_directory(environment: Mapping[str, str]) -> Path:
    base = environment.get("RUNNER_TOOL_CACHE") or environment.get("XDG_CACHE_HOME")
    home = environment.get("HOME") or tempfile.gettempdir()
    return (Path(base) if base else Path(home) / ".cache") / "tunegate" / "env"


def with_sources(environment: Mapping[str, str]) -> dict[str, str]:
    """Our own code comes from the action's checkout, never from the workspace."""
    paths = os.pathsep.join(str(ROOT / source) for source in SOURCES)
    return {**environment, "PYTHONPATH": paths, "PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"}


def clean_up(out: Path) -> int:
    """Remove the working files of a killed run. Its processes are gone already: each asked the
    kernel to be ended with its parent."""
    shutil.rmtree(out / "work", ignore_errors=True)
    return 0


def fail(text: str, code: int) -> int:
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    print(f"::error title=tunegate::{escaped}")
    return code


def last_line(text: str | None) -> str:
    lines = (text or "").strip().splitlines()
    return lines[-1][:500] if lines else "no message"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
