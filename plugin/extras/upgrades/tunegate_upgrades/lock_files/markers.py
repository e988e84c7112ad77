"""Whether a package is for this Python and platform, by its environment markers."""

from __future__ import annotations

from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName

_MAX_CHARACTERS = 2000
"""A longer one is nobody's, and could nest too deeply to be read."""


def applies(marker: str) -> bool:
    """Returns whether the marker holds here, as it does without extras. Raises ValueError for what
    is no marker."""
    if len(marker) > _MAX_CHARACTERS:
        raise ValueError(f"a marker of {len(marker)} characters")
    try:
        return Marker(marker).evaluate({"extra": ""})
    except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName, RecursionError) as error:
        raise ValueError(f"no marker: {marker[:80]}") from error
