"""What the tests of several pipelines need."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipelines.npm_tools import installed_npm_tools


@pytest.fixture(scope="session")
def npm_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of npm's programs."""
    return installed_npm_tools(tmp_path_factory.mktemp("npm"))
