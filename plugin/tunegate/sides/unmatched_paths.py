"""The paths of a configuration that match no model: all of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tunegate.artifacts.changes import ModelPath
from tunegate.config import Config
from tunegate.globs import matches


def unmatched_paths(config: Config, paths: Sequence[ModelPath], place: str) -> Iterator[str]:
    """One line for each entry of `models` that matches none of the paths; `place` says in what."""
    for entry in config.models:
        if not any(matches(entry.path, path) for path in paths):
            yield (
                f"path {entry.path} matches no ONNX file of {place}. "
                "Correct the glob, or commit the model (also when it is stored by LFS or DVC)."
            )
