"""The paths of a configuration that match no model: all of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import PurePosixPath

from tunegate.artifacts.changes import ModelPath
from tunegate.config import Config
from tunegate.globs import matches

_LIKELY = 0.6
_SHOWN = 3
_COMMIT = "commit the model (also when it is stored by LFS or DVC)."


def unmatched_paths(config: Config, paths: Sequence[ModelPath], place: str) -> Iterator[str]:
    """One line for each entry of `models` that matches none of the paths; `place` says in what."""
    for entry in config.models:
        if not any(matches(entry.path, path) for path in paths):
            advice = _advice(entry.path, paths)
            yield f"path {entry.path} matches no ONNX file of {place}{advice}"


def _advice(written: str, paths: Sequence[ModelPath]) -> str:
    """The nearest models, what was likely meant, and what else to do."""
    is_glob = bool({*written} & {*"*?["})
    what = "glob" if is_glob else "path"
    if not paths:
        return f", which has none at all. Correct the {what}, or {_COMMIT}"
    near = sorted(dict.fromkeys(paths), key=lambda path: (-_likeness(written, path), path))
    meant = _meant(written, near[0]) if is_glob else near[0]
    shown = f"; the nearest: {', '.join(near[:_SHOWN])}"
    if _likeness(written, meant) < _LIKELY:
        return f"{shown}. Correct the {what}, or {_COMMIT}"
    return f"{shown if is_glob else ''}. Did you mean {meant}? Otherwise {_COMMIT}"


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
