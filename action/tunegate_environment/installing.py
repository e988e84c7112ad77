"""Installs exactly a lock's content into a virtual environment: by uv, whose version and hashes are
pinned, too, and by pip if uv cannot be fetched or does not start."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from tunegate_environment.children import run_child
from tunegate_environment.complaints import complaint
from tunegate_environment.pip_settings import uv_variables

_CHECKED = ("--require-hashes", "--only-binary", ":all:")
_PIP_INSTALL = (
    *("-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"),
    *_CHECKED,
)

_PIP_TOO = ("Hash mismatch", "No space left")
"""Failures that pip would repeat, after minutes."""


class Wanted(NamedTuple):
    """An environment to make at `directory`. `variables` are the job's, `added` are further
    locks."""

    lock: Path
    directory: Path
    variables: Mapping[str, str]
    added: tuple[Path, ...] = ()

    @property
    def python(self) -> Path:
        return self.directory / "bin" / "python"

    @property
    def beside(self) -> Path:
        """The directory that uv needs only while it installs, on the same disk, so that files are
        linked."""
        return self.directory.with_name(f"{self.directory.name}.uv")

    @property
    def source(self) -> list[str]:
        """The index options of pip and uv."""
        wheelhouse = self.variables.get("TUNEGATE_WHEELHOUSE", "")
        links = ["--find-links", str(Path(wheelhouse).resolve())]
        return ["--no-index", *links] if wheelhouse else []

    @property
    def requirements(self) -> list[str | Path]:
        """The options of pip and uv that name the locks."""
        return [word for lock in (self.lock, *self.added) for word in ("-r", lock)]

    def clear(self) -> None:
        """Removes everything that was made: the disk may be full."""
        for directory in (self.beside, self.directory):
            shutil.rmtree(directory, ignore_errors=True)


def install(plan: Wanted) -> str:
    """Installs, and returns which tool did. Nothing that comes with a package is run: only wheels
    are accepted, and only with the lock's hashes. Raises CalledProcessError and OSError."""
    try:
        _install_by_uv(plan)
    except (subprocess.CalledProcessError, OSError) as error:
        plan.clear()
        if any(each in str(error) + str(getattr(error, "stderr", "")) for each in _PIP_TOO):
            raise
        why = complaint(error)
        print(f"tunegate: uv failed ({why}): pip installs, which takes minutes", flush=True)
        _install_by_pip(plan)
        return "pip"
    finally:
        shutil.rmtree(plan.beside, ignore_errors=True)
    return "uv"


def _install_by_uv(plan: Wanted) -> None:
    python = _make_environment(plan)
    tool, installer = plan.beside / "tool", plan.lock.with_name("installer.lock")
    options = (*plan.source, "--no-deps", "--target", tool, "-r", installer)
    run_child([python, *_PIP_INSTALL, *options], plan.variables, "fetching uv")
    pip_config = run_child([python, "-I", "-m", "pip", "config", "list"], plan.variables)
    variables = {
        **plan.variables,
        "UV_INDEX_STRATEGY": "unsafe-best-match",  # as pip does; the hashes say which file it is
        "UV_CACHE_DIR": str(plan.beside / "cache"),  # one that is kept would keep damage too
        **uv_variables(pip_config),
    }
    uv = [tool / "bin" / "uv", "--no-config", "--no-progress", "--color", "never", "pip"]
    options = (*_CHECKED, *plan.source, "--python", plan.python, *plan.requirements)
    run_child([*uv, "install", "--quiet", *options], variables, "installing packages")


def _make_environment(plan: Wanted) -> str | Path:
    """Makes the virtual environment, and returns a Python that has pip: installing pip again takes
    three seconds."""
    if find_spec("pip") is not None:
        run_child([*_venv(plan), "--without-pip"], plan.variables)
        return sys.executable
    run_child(_venv(plan), plan.variables, "making a virtual environment")
    return plan.python


def _install_by_pip(plan: Wanted) -> None:
    run_child(_venv(plan), plan.variables, "making a virtual environment")
    command = [plan.python, *_PIP_INSTALL, *plan.source, *plan.requirements]
    run_child(command, plan.variables, "installing packages")


def _venv(plan: Wanted) -> list[str | Path]:
    return [sys.executable, "-I", "-m", "venv", plan.directory]
