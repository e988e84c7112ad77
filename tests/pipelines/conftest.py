"""Fixtures of the tests of several pipelines."""

from pathlib import Path

import pytest

from tests.support.programs import npm_ci

PIPELINES = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def npm_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of npm's programs that run or lint the files of pipelines."""
    directory = npm_ci(PIPELINES.glob("package*.json"), tmp_path_factory.mktemp("npm"))
    return directory / "node_modules" / ".bin"
