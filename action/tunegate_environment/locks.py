"""Chooses the lock that a job needs. A wrong guess costs time and decides nothing: a run that lacks
a runtime notices before it begins, and continues in the environment with everything."""

import re
from collections.abc import Mapping
from pathlib import Path

DRIVER = Path("/proc/driver/nvidia/version")
EVERYTHING = "everything"
"""The value of `TUNEGATE_ENVIRONMENT` that overrides the guess."""
_MAX_BYTES = 1 << 20
_TARGETS = re.compile(r"^targets:[ \t]*(?:#.*)?\n((?:[ \t]*(?:#.*)?\n|[ \t-].*\n?)*)", re.MULTILINE)
_TARGET = re.compile(r"^([ \t]*)- ", re.MULTILINE)
_RUNTIME = re.compile(
    r"""^[ \t]*(?:- )?[ \t]*runtime:[ \t]+(["']?)([a-z][a-z0-9_]*)\1[ \t]*(?:#.*)?$""", re.MULTILINE
)


def lock_for(locks: Path, environment: Mapping[str, str], driver: Path = DRIVER) -> Path:
    """Returns the lock file for the job: TVM is 400 MB that not every runtime needs, and a GPU
    needs another 200."""
    if lock := environment.get("TUNEGATE_LOCK"):
        return Path(lock).resolve()
    checkout = Path(environment.get("TUNEGATE_PATH", "").strip())
    config = checkout / (environment.get("TUNEGATE_CONFIG") or "tunegate.yaml")
    is_guessed = environment.get("TUNEGATE_ENVIRONMENT") != EVERYTHING
    runtime = only_runtime(_text(config)) if is_guessed else ""
    if runtime and (narrow := locks / f"run-{runtime}.lock").is_file():
        return narrow
    return locks / ("gpu.lock" if driver.exists() else "run.lock")


def only_runtime(config: str) -> str:
    """Returns the runtime that each target of the checkout's configuration names, or an empty
    string. It is read without a YAML library; unusual spellings count as another runtime."""
    block = _TARGETS.search(config)
    if block is None:
        return ""
    indents = [len(match[1]) for match in _TARGET.finditer(block[1])]
    targets = indents.count(min(indents, default=0))
    runtimes = [match[2] for match in _RUNTIME.finditer(block[1])]
    return runtimes[0] if targets == len(runtimes) and len(set(runtimes)) == 1 else ""


def _text(config: Path) -> str:
    """Returns the text, '' if the file is missing, too large or no file."""
    try:
        if config.is_symlink() or not config.is_file() or config.stat().st_size > _MAX_BYTES:
            return ""
        return config.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
