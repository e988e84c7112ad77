"""The name under which a model is gated: its path, and its profile where it has some.

`models/encoder.onnx@long` is unmistakable: no path of a model ends otherwise than in `.onnx`, and
no profile's name does. `models/encoder.onnx@long (onnxruntime of uv.lock)` is the same model under
the packages of that lock file, at base and head.
"""

from __future__ import annotations

import re

from tunegate.artifacts.changes import ModelPath

_SEPARATOR = "@"
_ENDING = ".onnx"
_UPGRADE = re.compile(r"(.+) \([a-z][a-z0-9_]* of [^()]+\)")


def gated_name(path: ModelPath, profile: str) -> ModelPath:
    """The name of a model in one of its profiles; its path where `profile` is ''."""
    return f"{path}{_SEPARATOR}{profile}" if profile else path


def upgraded_name(name: ModelPath, runtime: str, lock: str) -> ModelPath:
    """The name of a model that is gated for an upgrade of a runtime in a lock file."""
    return f"{name} ({runtime} of {lock.replace('(', '_').replace(')', '_')})"


def without_upgrade(name: ModelPath) -> ModelPath:
    """The name of the model itself."""
    found = None if name.casefold().endswith(_ENDING) else _UPGRADE.fullmatch(name)
    return found[1] if found else name


def path_of(name: ModelPath) -> ModelPath:
    """The path of the file."""
    return _parts(name)[0]


def profile_of(name: ModelPath) -> str:
    """The name of the profile, '' where there is none."""
    return _parts(name)[1]


def _parts(name: ModelPath) -> tuple[ModelPath, str]:
    name = without_upgrade(name)
    path, separator, profile = name.rpartition(_SEPARATOR)
    if not separator or not path.casefold().endswith(_ENDING) or name.casefold().endswith(_ENDING):
        return name, ""
    return path, profile
