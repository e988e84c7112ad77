"""A virtual environment that the user named, and the packages that form a runtime in it."""

import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tunegate.artifacts.artifact_io import NOT_JSON
from tunegate.errors import ConfigError
from tunegate.system.processes.interpreter import ask_environment

_SCRIPT = Path(__file__).with_name("describe_environment.py")
_LIMIT_SECONDS = 60.0


class RuntimeEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """An environment with the runtime in it, of this `version`. `packages` are the versions of the
    runtime and its requirements, `others` those of the rest."""

    directory: Path
    python: Path
    version: str
    packages: Mapping[str, str]
    others: Mapping[str, str]


class _Package(msgspec.Struct, frozen=True):
    version: str
    needs: tuple[str, ...] = ()


class _Description(msgspec.Struct, frozen=True):
    python: str
    platform: str
    packages: dict[str, _Package]
    owners: dict[str, tuple[str, ...]]


def read_environment(directory: Path, runtime: str, names: Sequence[str]) -> RuntimeEnvironment:
    """Reads an environment with its own Python. `names` are the packages that form the runtime.
    Raises ConfigError if it is no environment, does not fit this Python, or lacks the runtime."""
    python = directory.absolute() / "bin" / "python"
    description = _describe(directory, python, names)
    _require_alike(directory, description)
    roots = {name for owners in description.owners.values() for name in owners}
    if not roots or not roots <= set(description.packages):
        packages = " or ".join(names)
        message = f"--env {directory}: {runtime} is not installed there (no package {packages})."
        raise ConfigError(message)
    relevant = _add_requirements(roots, description.packages)
    versions = {name: each.version for name, each in sorted(description.packages.items())}
    return RuntimeEnvironment(
        directory=directory,
        python=python,
        version=versions[min(roots)],
        packages={name: version for name, version in versions.items() if name in relevant},
        others={name: version for name, version in versions.items() if name not in relevant},
    )


def differences(base: Mapping[str, str], head: Mapping[str, str]) -> tuple[str, ...]:
    """Returns a line for each package that differs, like `onnxruntime 1.19.2 -> 1.20.1`."""
    return tuple(
        f"{name} {base.get(name, 'none')} -> {head.get(name, 'none')}"
        for name in sorted({*base, *head})
        if base.get(name) != head.get(name)
    )


def _describe(directory: Path, python: Path, names: Sequence[str]) -> _Description:
    if not python.is_file():
        message = (
            f"--env {directory}: no virtual environment (there is no {python}). "
            f"Make one with python -m venv."
        )
        raise ConfigError(message)
    try:
        answer = ask_environment(python, _SCRIPT, names, limit_seconds=_LIMIT_SECONDS)
        if answer is not None and answer.returncode == 0:
            return msgspec.json.decode(answer.stdout, type=_Description)
        lines = answer.stderr.decode(errors="replace").strip().splitlines() if answer else ()
        why = lines[-1][:200] if lines else "no answer"
    except (OSError, *NOT_JSON) as error:
        why = str(error)[:200]
    raise ConfigError(f"--env {directory}: its Python does not say what is installed ({why}).")


def _require_alike(directory: Path, description: _Description) -> None:
    """Raises ConfigError for another Python: our measuring code is compiled for this one."""
    major, minor = sys.version_info[:2]
    here = f"{sys.implementation.name} {major}.{minor}", sysconfig.get_platform()
    there = description.python, description.platform
    if here != there:
        message = (
            f"--env {directory}: is for {' on '.join(there)}, and tunegate runs on "
            f"{' on '.join(here)}. Make it with the same Python."
        )
        raise ConfigError(message)


def _add_requirements(roots: set[str], packages: Mapping[str, _Package]) -> set[str]:
    names: set[str] = set()
    waiting = set(roots)
    while waiting:
        name = waiting.pop()
        names.add(name)
        waiting |= {each for each in packages[name].needs if each in packages} - names
    return names
