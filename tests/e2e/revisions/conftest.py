"""The repository that every test here begins with."""

from pathlib import Path

import pytest

from tests.e2e.revisions.server import new_server


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("server") / "server"
    new_server(path)
    return path
