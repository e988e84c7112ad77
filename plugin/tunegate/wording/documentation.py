"""The address of a page of the documentation: whoever installed the package has no `docs/`."""

from __future__ import annotations

PAGES = "https://github.com/tunegate/tunegate/tree/main/docs"
"""The address in `pyproject.toml`."""


def page_address(name: str) -> str:
    """The address of the page of this name, for a message."""
    return f"{PAGES}/{name}.md"
