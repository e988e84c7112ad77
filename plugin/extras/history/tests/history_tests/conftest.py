"""The programs of npm that a page is checked with."""

from tests.e2e.conftest import node_modules

__all__ = ["node_modules"]
