"""The first Python of the action: standard library only.

It finds or makes the locked environment and execs `tunegate_action` in it, so that the runner's
signals reach the process that does the work. `clean-up` is the step that always runs.
"""

import html
import importlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("action", "plugin", "cache")
EXTRAS = ROOT / "plugin" / "extras"
LOCKS = ROOT / "requirements"
ISOLATED = ("-P", "-s")
"""Flags that keep the workspace out of all imports. `-I` would forget where our sources are."""
USAGE, UNFIT, BUG, CANCELLED = 2, 4, 70, 130
SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|_KEY", re.IGNORECASE)
MIN_SECRET = 6


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """`check` tests whether `run` can start. `act` is what `run` execs in the environment it
    found."""
    programs: dict[str, Callable[[Mapping[str, str]], int]] = {
        "check": check,
        "run": run,
        "act": act,
        "clean-up": lambda its: clean_up(Path(its.get("TUNEGATE_OUT", "").strip() or ".tunegate")),
    }
    sys.path.insert(0, str(ROOT / "action"))
    try:
        return programs[arguments[0]](environment)
    except BaseException as error:
        # Python itself would end with 1, and that means a regression.
        text, code = explain_error(error)
        with suppress(Exception):
            fail(text, code)
        return code


def check(environment: Mapping[str, str]) -> int:
    """Checks the interpreter before the shell execs it: one that cannot read this file would exit
    with 1, which means a regression."""
    problem = unsupported_machine()
    return fail(problem, UNFIT) if problem else 0


def run(environment: Mapping[str, str]) -> int:
    problem = unsupported_machine()
    if problem:
        return fail(problem, UNFIT)
    from tunegate_environment.extras import UnknownExtraError

    try:
        key, python, lock = found_or_made(environment)
    except UnknownExtraError as error:
        return fail(str(error), USAGE)
    except subprocess.CalledProcessError as error:
        return fail(f"the environment could not be installed: {one_line(error.stderr)}", UNFIT)
    except OSError as error:
        return fail(f"the environment could not be written: {error}", UNFIT)
    say("GITHUB_OUTPUT", f"environment-key={key}")
    action = [str(python), *ISOLATED, str(Path(__file__).resolve()), "act"]
    variables = {"TUNEGATE_ENVIRONMENT": lock.stem, "TUNEGATE_BASE_PYTHON": sys.executable}
    try:
        os.execve(python, action, our_own({**environment, **variables}))
    except OSError as error:
        return fail(f"the environment's Python could not be started: {error}", UNFIT)


def found_or_made(environment: Mapping[str, str]) -> tuple[str, Path, Path]:
    """Returns the key and the Python of an environment, and its lock."""
    from tunegate_environment.children import cancel_on_signals, raise_if_cancelled
    from tunegate_environment.extras import extras_for, locks_of
    from tunegate_environment.kept import environment_for
    from tunegate_environment.locks import lock_for

    cancel_on_signals()
    lock = lock_for(LOCKS, environment)
    added = locks_of(extras_for(EXTRAS, environment))
    key, python = environment_for(lock, environment, added)
    raise_if_cancelled()
    return key, python, lock


def act(environment: Mapping[str, str]) -> int:
    """Runs in the environment, which may lack anything not checked here."""
    from tunegate_action.entry import entry

    entry()


def unsupported_machine() -> str:
    """Returns why the machine is not supported, '' if it is. The product's own file decides, from
    the action's checkout."""
    sys.path.insert(0, str(ROOT / "plugin"))
    try:
        from tunegate.cli.supported_machine import this_machine, why_unsupported
    finally:
        del sys.path[0]
    return why_unsupported(this_machine())


def explain_error(error: BaseException) -> tuple[str, int]:
    """Returns one line and a documented exit code. `act` ends with SystemExit."""
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        raise error
    what = f"{type(error).__name__}: {one_line(str(error))}"
    if isinstance(error, KeyboardInterrupt):
        return "cancelled", CANCELLED
    if isinstance(error, ImportError | SyntaxError | OSError | MemoryError):
        return f"the action or its environment is damaged, or this machine refuses: {what}", UNFIT
    return f"a bug of tunegate ({what})", BUG


def our_own(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment with our own code from the action's checkout, never from the
    workspace."""
    from tunegate_environment.children import absolute_only
    from tunegate_environment.extras import extras_for

    sources = (*(ROOT / source for source in SOURCES), *extras_for(EXTRAS, environment))
    paths = os.pathsep.join(map(str, sources))
    own_variables = {"PYTHONPATH": paths, "PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"}
    variables = absolute_only(environment)
    return {
        **{name: variables[name] for name in variables if not name.startswith("PYTHON")},
        **own_variables,
    }


def clean_up(out: Path) -> int:
    """Removes the working files of a killed run. Its processes are gone: each asked the kernel to
    die with its parent. Files that are not ours stay, without an error."""
    sys.path.insert(0, str(ROOT / "plugin"))
    try:
        module = importlib.import_module("tunegate.system.output.owned_directory")
        module.remove_abandoned_work(out)
    except Exception as error:
        print(f"::warning title=tunegate::{escape_command(f'nothing was cleaned up: {error}')}")
    return 0


def fail(text: str, code: int) -> int:
    text = without_secrets(text, os.environ)
    print(f"::error title=tunegate::{escape_command(text)}")
    line = html.escape(text).replace("\n", " ")
    say("GITHUB_STEP_SUMMARY", f"tunegate: no verdict (exit code {code}): <code>{line}</code>")
    say("GITHUB_OUTPUT", "verdict=error")
    return code


def escape_command(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def without_secrets(text: str, environment: Mapping[str, str]) -> str:
    """Returns the text without secrets: a package index may have a password in its address. The
    product's own code for this is not installed yet."""
    for name, value in environment.items():
        if SECRET_NAME.search(name) and len(value) >= MIN_SECRET:
            text = text.replace(value, "***")
    return re.sub(r"(?<=:/)(/?)[^/@\s]+@", r"\1***@", text)


def one_line(text: str | None) -> str:
    lines = (text or "").strip().splitlines()
    return lines[-1][:500] if lines else "no message"


def say(variable: str, line: str) -> None:
    """Writes a line to one of GitHub's files; a failure does not change the exit code."""
    with (
        suppress(OSError, KeyError),
        Path(os.environ[variable]).open("a", encoding="utf-8") as file,
    ):
        file.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
