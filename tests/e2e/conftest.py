"""Fixtures of the tests that run files for GitHub."""

from pathlib import Path

import pytest

from tests.support.programs import npm_ci

E2E = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def node_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with GitHub's expression evaluator and the scripts that use it."""
    return npm_ci((*E2E.glob("package*.json"), *E2E.glob("*.mjs")), tmp_path_factory.mktemp("node"))
