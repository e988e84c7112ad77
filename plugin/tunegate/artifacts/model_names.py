"""The name under which a model is gated: its path, and its profile where it has some.

`models/encoder.onnx@long` is unmistakable: no path of a model ends otherwise than in `.onnx`, and
no profile's name does.
"""

from __future__ import annotations

from tunegate.artifacts.changes import ModelPath

_SEPARATOR = "@"
_ENDING = ".onnx"


def gated_name(path: ModelPath, profile: str) -> ModelPath:
    """The name of a model in one of its profiles; its path where `profile` is ''."""
    return f"{path}{_SEPARATOR}{profile}" if profile else path


def path_of(name: ModelPath) -> ModelPath:
    """The path of the file."""
    return _parts(name)[0]


def profile_of(name: ModelPath) -> str:
    """The name of the profile, '' where there is none."""
    return _parts(name)[1]


def _parts(name: ModelPath) -> tuple[ModelPath, str]:
    path, separator, profile = name.rpartition(_SEPARATOR)
    if not separator or not path.casefold().endswith(_ENDING) or name.casefold().endswith(_ENDING):
        return name, ""
    return path, profile
