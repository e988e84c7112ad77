"""Finds the kind of a lock file by its path, and reads it."""

from __future__ import annotations

import re
from posixpath import basename
from typing import Literal

from tunegate_upgrades.lock_files.lock import LockFile, LockFileError
from tunegate_upgrades.lock_files.requirements_file import ReadText, read_requirements
from tunegate_upgrades.lock_files.toml_locks import (
    read_pdm_lock,
    read_poetry_lock,
    read_pylock,
    read_uv_lock,
)

LockKind = Literal["requirements", "uv", "pylock", "poetry", "pdm", "dockerfile"]
_OTHERS = r"(?:poetry|pdm|pipfile|pixi|conda)\b"
_CONDA = r"pixi\.(?:lock|toml)|conda\b.*\.(?:ya?ml|lock|txt)|environment\b.*\.ya?ml"
_NAMES: dict[LockKind, str] = {
    "uv": r"uv\.lock",
    "pylock": r"pylock(?:\.[^.]+)?\.toml",
    "poetry": r"poetry\.lock",
    "pdm": r"pdm(?:\.[^.]+)?\.lock",
    "dockerfile": r"(?:dockerfile|containerfile)(?:\..+)?|.+\.dockerfile",
    "requirements": rf"(?!{_OTHERS}).+\.(?:txt|lock|in)",
}


def lock_kind(path: str) -> LockKind:
    """Returns the kind. Raises LockFileError for an unknown one."""
    for kind, name in _NAMES.items():
        if re.fullmatch(name, basename(path), re.IGNORECASE):
            return kind
    if re.fullmatch(_CONDA, basename(path), re.IGNORECASE):
        message = (
            f"watch: {path} is not read: packages of conda are other builds than those of PyPI. "
            "Take it out of watch.files, and compare two environments with tunegate compare --env."
        )
        raise LockFileError(message)
    message = (
        f"watch: {path} is of no kind that is read. Watch requirements (*.txt, *.lock, *.in), "
        "uv.lock, poetry.lock, pdm.lock, pylock.toml or a Dockerfile."
    )
    raise LockFileError(message)


def read_lock(path: str, text: str, read_other: ReadText) -> LockFile:
    """Returns the pins of a file that is no Dockerfile. Raises LockFileError."""
    match lock_kind(path):
        case "uv":
            return read_uv_lock(path, text)
        case "pylock":
            return read_pylock(path, text)
        case "poetry":
            return read_poetry_lock(path, text)
        case "pdm":
            return read_pdm_lock(path, text)
        case _:
            return read_requirements(path, text, read_other)
