"""A virtual environment that the user named, and what of it a runtime is made of."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tunegate.errors import ConfigError
from tunegate.system.processes.interpreter import ask_environment

_SCRIPT = Path(__file__).with_name("describe.py")
_LIMIT_SECONDS = 60.0


class RuntimeEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """One with the runtime in it: `version` is that of the runtime. `packages` are the versions of
    the runtime and of all that it requires, `others` those of the rest."""

    directory: Path
    python: Path
    version: str
    packages: Mapping[str, str]
    others: Mapping[str, str]


class _Package(msgspec.Struct, frozen=True):
    version: str
    needs: tuple[str, ...] = ()


class _Described(msgspec.Struct, frozen=True):
    python: str
    platform: str
    packages: dict[str, _Package]
    owners: dict[str, tuple[str, ...]]


def read_environment(directory: Path, runtime: str, names: Sequence[str]) -> RuntimeEnvironment:
    """Starts the Python of the environment. `names` are the packages that the runtime is. Raises
    ConfigError for what is no environment, one that does not fit to this Python, and one without
    the runtime."""
    python = directory.absolute() / "bin" / "python"
    described = _described(directory, python, names)
    _require_alike(directory, described)
    roots = {name for owners in described.owners.values() for name in owners}
    if not roots or not roots <= set(described.packages):
        named = " or ".join(names)
        message = f"--env {directory}: {runtime} is not installed there (no package {named})."
        raise ConfigError(message)
    relevant = _with_needs(roots, described.packages)
    versions = {name: each.version for name, each in sorted(described.packages.items())}
    return RuntimeEnvironment(
        directory=directory,
        python=python,
        version=versions[min(roots)],
        packages={name: version for name, version in versions.items() if name in relevant},
        others={name: version for name, version in versions.items() if name not in relevant},
    )


def differences(base: Mapping[str, str], head: Mapping[str, str]) -> tuple[str, ...]:
    """Each package that differs, like `onnxruntime 1.19.2 -> 1.20.1`."""
    return tuple(
        f"{name} {base.get(name, 'none')} -> {head.get(name, 'none')}"
        for name in sorted({*base, *head})
        if base.get(name) != head.get(name)
    )


def _described(directory: Path, python: Path, names: Sequence[str]) -> _Described:
    if not python.is_file():
        message = (
            f"--env {directory}: no virtual environment (there is no {python}). "
            f"Make one with python -m venv."
        )
        raise ConfigError(message)
    try:
        done = ask_environment(python, _SCRIPT, names, limit_seconds=_LIMIT_SECONDS)
        if done is not None and done.returncode == 0:
            return msgspec.json.decode(done.stdout, type=_Described)
        lines = done.stderr.decode(errors="replace").strip().splitlines() if done else ()
        why = lines[-1][:200] if lines else "no answer"
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        why = str(error)[:200]
    raise ConfigError(f"--env {directory}: its Python does not say what is installed ({why}).")


def _require_alike(directory: Path, described: _Described) -> None:
    """The code that measures is ours, and is compiled for this Python."""
    major, minor = sys.version_info[:2]
    here = f"{sys.implementation.name} {major}.{minor}", sysconfig.get_platform()
    there = described.python, described.platform
    if here != there:
        message = (
            f"--env {directory}: is for {' on '.join(there)}, and tunegate runs on "
            f"{' on '.join(here)}. Make it with the same Python."
        )
        raise ConfigError(message)


def _with_needs(roots: set[str], packages: Mapping[str, _Package]) -> set[str]:
    found: set[str] = set()
    waiting = set(roots)
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= {each for each in packages[name].needs if each in packages} - found
    return found
