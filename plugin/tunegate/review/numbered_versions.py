"""Models whose paths differ in a number, as model servers keep them: `models/enc/1/model.onnx` and
`models/enc/2/model.onnx`. Decides which version a new one is compared with."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from tunegate.artifacts.changes import ModelPath
from tunegate.review.globs import VERSION, NumberedPath, version_of

NumberedFor = Callable[[ModelPath], NumberedPath | None]
"""Returns the version of a path by the configuration, None without a `{version}` pattern."""

_LIKELY = re.compile(r"(?:(?<=/)|^)v?(\d+(?:\.\d+)*)(?=/)|[-_.]v(\d+(?:\.\d+)*)(?=[./])")
"""A directory that is a number, or a number after a `v`."""
_MAX_NUMBERS = 8


def earlier_versions(
    new: Collection[ModelPath], base: Collection[ModelPath], numbered: NumberedFor
) -> dict[ModelPath, ModelPath]:
    """Returns, for each new model, its highest earlier version at the base, if there is one."""
    families: dict[str, list[tuple[tuple[int, ...], ModelPath]]] = {}
    for path in base:
        if (found := numbered(path)) is not None:
            families.setdefault(found.family, []).append((found.version, path))
    pairs: dict[ModelPath, ModelPath] = {}
    for path in new:
        if (found := numbered(path)) is None:
            continue
        earlier = [each for each in families.get(found.family, ()) if each[0] < found.version]
        if earlier:
            pairs[path] = max(earlier)[1]
    return pairs


class _Likely(NamedTuple):
    version: tuple[int, ...]
    path: ModelPath


def uncompared_versions(
    added: Collection[ModelPath],
    deleted: Collection[ModelPath],
    base: Collection[ModelPath],
    head: Collection[ModelPath],
) -> Iterator[str]:
    """Yields a line for each new model with an earlier version beside it, and for each deleted one
    with a later version, if no pattern has `{version}` for them."""
    before, after = _by_family(base), _by_family(head)
    for path in sorted(added):
        if found := _beside(path, before, is_earlier=True):
            family, other = found
            yield (
                f"{path} is new, so it is not compared with {other}: write path: {family} in "
                "models to compare each version with the one before it"
            )
    for path in sorted(deleted):
        if found := _beside(path, after, is_earlier=False):
            family, other = found
            yield (
                f"{path} is deleted, and {other} stays without being compared with it: write "
                f"path: {family} in models to compare each version with the one before it"
            )


def _beside(
    path: ModelPath, families: dict[str, list[_Likely]], *, is_earlier: bool
) -> tuple[str, ModelPath] | None:
    """Returns the family of a path, and its nearest other version in this direction."""
    for found in _likely_numbers(path):
        others = families.get(found.family, ())
        if is_earlier:
            nearest = max((o for o in others if o.version < found.version), default=None)
        else:
            nearest = min((o for o in others if o.version > found.version), default=None)
        if nearest is not None:
            return found.family, nearest.path
    return None


def _by_family(paths: Collection[ModelPath]) -> dict[str, list[_Likely]]:
    families: dict[str, list[_Likely]] = {}
    for path in paths:
        for found in _likely_numbers(path):
            families.setdefault(found.family, []).append(_Likely(found.version, path))
    return families


def _likely_numbers(path: ModelPath) -> Iterator[NumberedPath]:
    for count, found in enumerate(_LIKELY.finditer(path)):
        if count == _MAX_NUMBERS:
            return
        group = 1 if found[1] is not None else 2
        start, end = found.span(group)
        yield NumberedPath(f"{path[:start]}{VERSION}{path[end:]}", version_of(found[group]))
