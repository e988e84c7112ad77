"""The tools of npm that the core's tests of pipelines have, too."""

from tests.pipelines.conftest import npm_tools

__all__ = ["npm_tools"]
