"""The first Python of the action: standard library only.

Finds or makes the locked environment and execs `tunegate_action` in it, so that the runner's
signals reach the process that does the work. `clean-up` is the step that always runs.
"""

from __future__ import annotations

import csv
import hashlib
import html
import importlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("action", "plugin", "cache")
ISOLATED = ("-P", "-s")
"""Nothing is imported from the workspace. `-I` would forget where our sources are."""
LISTS = {"PATH": ":", "LD_LIBRARY_PATH": ":;", "LD_PRELOAD": ": ", "LD_AUDIT": ":"}
UNFIT, BUG, CANCELLED = 4, 70, 130
RECORD_COLUMNS = 3
SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|_KEY", re.IGNORECASE)
MIN_SECRET = 6
DRIVER = Path("/proc/driver/nvidia/version")


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """`check`: whether `run` can. `act`: what `run` execs in the environment that it found."""
    programs: dict[str, Callable[[Mapping[str, str]], int]] = {
        "check": check,
        "run": run,
        "act": act,
        "clean-up": lambda its: clean_up(Path(its.get("TUNEGATE_OUT", ".tunegate"))),
    }
    try:
        return programs[arguments[0]](environment)
    except BaseException as error:
        # Python itself would end with 1, and that means a regression.
        text, code = explained(error)
        with suppress(Exception):
            fail(text, code)
        return code


def check(environment: Mapping[str, str]) -> int:
    """Checks the interpreter before the shell execs: one that cannot
    read this file ends with 1 too."""
    problem = unsupported_machine()
    return fail(problem, UNFIT) if problem else 0


def run(environment: Mapping[str, str]) -> int:
    problem = unsupported_machine()
    if problem:
        return fail(problem, UNFIT)
    try:
        python = environment_for(lock_for(environment), cache_directory(environment), environment)
    except subprocess.CalledProcessError as error:
        return fail(f"the environment could not be installed: {last_line(error.stderr)}", UNFIT)
    except OSError as error:
        return fail(f"the environment could not be written: {error}", UNFIT)
    action = [str(python), *ISOLATED, str(Path(__file__).resolve()), "act"]
    try:
        os.execve(python, action, our_own(environment))
    except OSError as error:
        return fail(f"the environment's Python could not be started: {error}", UNFIT)


def act(environment: Mapping[str, str]) -> int:
    """Runs in the environment, which may lack anything but what stands here."""
    from tunegate_action.entry import entry

    entry()


def unsupported_machine() -> str:
    """Empty where the product runs. Its own file decides, from the action's checkout."""
    sys.path.insert(0, str(ROOT / "plugin"))
    try:
        from tunegate.cli.supported_machine import this_machine, why_unsupported
    finally:
        del sys.path[0]
    return why_unsupported(this_machine())


def explained(error: BaseException) -> tuple[str, int]:
    """One line and an exit code of the contract. SystemExit is what `act` ends with."""
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        raise error
    what = f"{type(error).__name__}: {last_line(str(error))}"
    if isinstance(error, KeyboardInterrupt):
        return "cancelled", CANCELLED
    if isinstance(error, ImportError | SyntaxError | OSError | MemoryError):
        return f"the action or its environment is damaged, or this machine refuses: {what}", UNFIT
    return f"a bug of tunegate ({what})", BUG


def lock_for(environment: Mapping[str, str], driver: Path = DRIVER) -> Path:
    """What a GPU needs is 200 MB that other machines do not."""
    usual = "gpu.lock" if driver.exists() else "run.lock"
    return Path(environment.get("TUNEGATE_LOCK") or ROOT / "requirements" / usual)


def environment_for(lock: Path, cache: Path, environment: Mapping[str, str]) -> Path:
    """The interpreter of an environment that has exactly what the lock says; made once, by whoever
    comes first, under a name that says what is in it."""
    import fcntl

    directory = cache / key_of(lock)
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{directory.name}.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if (directory / ".complete").exists():
            broken = next(damages(directory), "")
            if not broken:
                return directory / "bin" / "python"
            print(f"::notice title=tunegate::the environment is made again: {broken}", flush=True)
        shutil.rmtree(directory, ignore_errors=True)
        install(lock, directory, environment)
        (directory / ".complete").touch()
    return directory / "bin" / "python"


def damages(directory: Path) -> Iterator[str]:
    """What an environment that was complete has lost: a file of its
    distributions, or its Python."""
    if not os.access(directory / "bin" / "python", os.X_OK):
        yield "its Python is missing"
    for record in directory.glob("lib/python*/site-packages/*.dist-info/RECORD"):
        with record.open(encoding="utf-8", newline="") as rows:
            for name, _, size in (row for row in csv.reader(rows) if len(row) == RECORD_COLUMNS):
                file = record.parent.parent / name
                if size and (not file.is_file() or file.stat().st_size != int(size)):
                    yield f"{name} is not what was installed"


def install(lock: Path, directory: Path, environment: Mapping[str, str]) -> None:
    """A virtual environment knows its own path, so it is made in place; `.complete` comes last."""
    quiet(environment, sys.executable, "-m", "venv", str(directory))
    wheelhouse = environment.get("TUNEGATE_WHEELHOUSE", "")
    source = ["--no-index", "--find-links", str(Path(wheelhouse).resolve())] if wheelhouse else []
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    python = str(directory / "bin" / "python")
    quiet(environment, python, *pip, *source, "-r", str(lock.resolve()))


def quiet(environment: Mapping[str, str], python: str, *arguments: str) -> None:
    """Runs a command in a directory of nobody's: what it starts may look around where it is."""
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
    """The environment with no place to look for programs or libraries that depends on the working
    directory: an empty entry means it. The environment is trusted; what it says by accident is
    not."""
    kept = dict(environment)
    for name, separators in LISTS.items():
        entries = re.split(f"[{separators}]", kept.pop(name, ""))
        if absolute := ":".join(entry for entry in entries if Path(entry).is_absolute()):
            kept[name] = absolute
    return kept


def clean_up(out: Path) -> int:
    """Remove the working files of a killed run. Its processes are gone already: each asked the
    kernel to be ended with its parent. What is not ours stays, and that is no verdict."""
    sys.path.insert(0, str(ROOT / "plugin"))
    try:
        module = importlib.import_module("tunegate.edges.output.abandoned_work")
        module.remove_abandoned_work(out)
    except Exception as error:
        print(f"::warning title=tunegate::{escaped(f'nothing was cleaned up: {error}')}")
    return 0


def fail(text: str, code: int) -> int:
    text = without_secrets(text, os.environ)
    print(f"::error title=tunegate::{escaped(text)}")
    shown = html.escape(text).replace("\n", " ")
    say("GITHUB_STEP_SUMMARY", f"tunegate: no verdict (exit code {code}): <code>{shown}</code>")
    say("GITHUB_OUTPUT", "verdict=error")
    return code


def escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def without_secrets(text: str, environment: Mapping[str, str]) -> str:
    """The text without secrets, as in problem.py, which is not there yet. An index of packages may
    have a password in its address."""
    for name, value in environment.items():
        if SECRET_NAME.search(name) and len(value) >= MIN_SECRET:
            text = text.replace(value, "***")
    return re.sub(r"(?<=:/)(/?)[^/@\s]+@", r"\1***@", text)


def say(variable: str, line: str) -> None:
    """Writes a line to one of GitHub's files; what cannot be written does not change the exit
    code."""
    with (
        suppress(OSError, KeyError),
        Path(os.environ[variable]).open("a", encoding="utf-8") as file,
    ):
        file.write(f"{line}\n")


def last_line(text: str | None) -> str:
    lines = (text or "").strip().splitlines()
    return lines[-1][:500] if lines else "no message"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
