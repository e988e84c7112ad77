"""The installed version of a package."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed_version(distribution: str) -> str:
    """Read from what is installed, nothing is imported; '' where it is not there."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""
