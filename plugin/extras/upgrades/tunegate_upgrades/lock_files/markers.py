"""Checks whether a package is for this Python and platform, by its environment markers."""

from __future__ import annotations

from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName

_MAX_CHARACTERS = 2000
"""No real marker is longer, and a longer one could nest too deeply to be parsed."""


def applies(marker: str) -> bool:
    """Returns whether the marker holds here, without extras. Raises ValueError if it is invalid."""
    if len(marker) > _MAX_CHARACTERS:
        raise ValueError(f"a marker of {len(marker)} characters")
    try:
        return Marker(marker).evaluate({"extra": ""})
    except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName, RecursionError) as error:
        raise ValueError(f"no marker: {marker[:80]}") from error
