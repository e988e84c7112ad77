"""The paths of a configuration that match no model: all of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tunegate.artifacts.changes import ModelPath
from tunegate.config import Config
from tunegate.globs import matches
from tunegate.wording.did_you_mean import did_you_mean


def unmatched_paths(config: Config, paths: Sequence[ModelPath], place: str) -> Iterator[str]:
    """One line for each entry of `models` that matches none of the paths; `place` says in what."""
    for entry in config.models:
        if not any(matches(entry.path, path) for path in paths):
            hint = did_you_mean(entry.path, paths, _otherwise(entry.path))
            yield f"path {entry.path} matches no ONNX file of {place}. {hint}"


def _otherwise(path: str) -> str:
    what = "glob" if set(path) & set("*?[") else "path"
    return f"Correct the {what}, or commit the model (also when it is stored by LFS or DVC)."
