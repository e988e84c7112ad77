"""The models that globs of the command line choose."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import PurePosixPath

import msgspec

from tunegate.artifacts.changes import ChangeSet, ModelPath, path_of
from tunegate.config import Config
from tunegate.errors import ConfigError
from tunegate.review.globs import is_glob, matches


def chosen_models(changes: ChangeSet, globs: Sequence[str]) -> ChangeSet:
    """All of them without a glob. Raises ConfigError for a glob that matches no model."""
    paths = [path_of(change.path) for change in changes.models]
    for glob in globs:
        if not any(matches(glob, path) for path in paths):
            raise ConfigError(f"--model: {glob} matches no configured model.")
    if not globs:
        return changes
    chosen = [c for c in changes.models if any(matches(g, path_of(c.path)) for g in globs)]
    return msgspec.structs.replace(changes, models=tuple(chosen))


# The paths of a configuration that match no model: all of them at once.

_LIKELY, _LIKELY_GLOB = 0.6, 0.75
"""Globs share their stars and endings, whatever they mean."""
_SHOWN = 3
_COMMIT = "commit the model (also when it is stored by LFS or DVC)."


def unmatched_paths(config: Config, paths: Sequence[ModelPath], place: str) -> Iterator[str]:
    """Yields a line for each entry of `models` that matches none of the paths; `place` describes
    them."""
    written = {entry.path for entry in config.models}
    for entry in config.models:
        if not any(matches(entry.path, path) for path in paths):
            advice = _advice(entry.path, paths, written)
            yield f"path {entry.path} matches no ONNX file of {place}{advice}"


def _advice(written: str, paths: Sequence[ModelPath], entries: Collection[str]) -> str:
    """The nearest models, what was likely meant, and what else to do. A glob is likely meant for
    models that no other entry has."""
    is_pattern = is_glob(written)
    what = "glob" if is_pattern else "path"
    if not paths:
        return f", which has none at all. Correct the {what}, or {_COMMIT}"
    near = sorted(dict.fromkeys(paths), key=lambda path: (-_likeness(written, path), path))
    free = [path for path in near if not any(matches(entry, path) for entry in entries)]
    meant = near[0] if not is_pattern else _meant(written, free[0]) if free else ""
    shown = f"; the nearest: {', '.join(near[:_SHOWN])}"
    if _likeness(written, meant) < (_LIKELY_GLOB if is_pattern else _LIKELY):
        return f"{shown}. Correct the {what}, or {_COMMIT}"
    return f"{shown if is_pattern else ''}. Did you mean {meant}? Otherwise {_COMMIT}"


def _meant(glob: str, path: ModelPath) -> str:
    """The glob most like this one that matches the path."""
    directory, last = str(PurePosixPath(path).parent), glob.rpartition("/")[2]
    own, top = glob.rpartition("/")[0], path.partition("/")[0]
    corrected = (f"{each}{name}" for each in _below(directory, own) for name in (last, "*.onnx"))
    found = [each for each in (*corrected, f"{top}/**/*.onnx") if matches(each, path)]
    return max(found, key=lambda each: _likeness(glob, each), default=path)


def _below(*directories: str) -> Iterator[str]:
    for each in directories:
        yield "" if each in {"", "."} else f"{each}/"


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()
