"""The first Python of the action: standard library only.

Finds or makes the locked environment and execs `tunegate_action` in it, so that the runner's signals
reach the process that does the work. `clean-up` is the step that always runs.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
SOURCES = ("action", "plugin", "cache")
ISOLATED = ("-P", "-s")
"""Nothing is imported from the workspace. `-I` would forget where our sources are."""
LISTS = {"PATH": ":", "LD_LIBRARY_PATH": ":;", "LD_PRELOAD": ": ", "LD_AUDIT": ":"}
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
    os.execve(python, [str(python), *ISOLATED, "-m", "tunegate_action"], our_own(environment))
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
    quiet(environment, sys.executable, "-m", "venv", str(directory))
    wheelhouse = environment.get("TUNEGATE_WHEELHOUSE", "")
    source = ["--no-index", "--find-links", str(Path(wheelhouse).resolve())] if wheelhouse else []
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    python = str(directory / "bin" / "python")
    quiet(environment, python, *pip, *source, "-r", str(lock.resolve()))


def quiet(environment: Mapping[str, str], python: str, *arguments: str) -> None:
    """In a directory of nobody's: what it starts may look around where it is."""
    subprocess.run(
        [python, "-I", *arguments],
        check=True,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
        env=absolute_only(environment),
    )


def key_of(lock: Path) -> str:
    parts = (lock.read_bytes(), platform.python_version().encode(), platform.machine().encode())
    return hashlib.sha256(b"\0".join((*parts, sys.executable.encode()))).hexdigest()[:32]


def cache_directory(environment: Mapping[str, str]) -> Path:
    base = environment.get("RUNNER_TOOL_CACHE") or environment.get("XDG_CACHE_HOME")
    home = environment.get("HOME") or tempfile.gettempdir()
    return (Path(base) if base else Path(home) / ".cache").resolve() / "tunegate" / "env"


def our_own(environment: Mapping[str, str]) -> dict[str, str]:
    """Our own code comes from the action's checkout, never from the workspace."""
    paths = os.pathsep.join(str(ROOT / source) for source in SOURCES)
    named = {"PYTHONPATH": paths, "PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"}
    kept = absolute_only(environment)
    return {**{name: kept[name] for name in kept if not name.startswith("PYTHON")}, **named}


def absolute_only(environment: Mapping[str, str]) -> dict[str, str]:
    """With no place to look for programs or libraries that depends on the working directory: an empty
    entry means it. The environment is trusted; what it says by accident is not."""
    kept = dict(environment)
    for name, separators in LISTS.items():
        entries = re.split(f"[{separators}]", kept.pop(name, ""))
        if absolute := ":".join(entry for entry in entries if Path(entry).is_absolute()):
            kept[name] = absolute
    return kept


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
