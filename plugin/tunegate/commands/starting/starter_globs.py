"""The globs that `tunegate init` writes, so that tomorrow's models are gated too."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from tunegate.globs import literal

_ENDING = ".onnx"


def starter_globs(paths: Sequence[str]) -> tuple[str, ...]:
    """Returns one glob for the models of each top-level directory, in order of their paths: for one
    directory, or for all below the deepest that they share."""
    places: dict[str, list[str]] = {}
    for path in sorted(paths):
        if path.endswith(_ENDING):
            places.setdefault(path.partition("/")[0] if "/" in path else "", []).append(path)
    return tuple(_glob([posixpath.dirname(path) for path in found]) for found in places.values())


def _glob(directories: Sequence[str]) -> str:
    shared = posixpath.commonpath(directories)
    pattern = f"*{_ENDING}" if {*directories} == {shared} else f"**/*{_ENDING}"
    return posixpath.join(literal(shared), pattern)
