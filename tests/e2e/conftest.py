"""What the tests share that run files for GitHub."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import require

E2E = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def node_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GitHub's expression evaluator from the npm registry, exactly as the lock file has it."""
    require("npm")
    directory = tmp_path_factory.mktemp("node")
    for source in (*E2E.glob("package*.json"), *E2E.glob("*.mjs")):
        shutil.copy(source, directory)
    done = subprocess.run(
        ["npm", "ci", "--no-audit", "--no-fund", "--silent"],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HOME": str(directory)},
    )
    if done.returncode:
        pytest.skip(f"npm ci does not work here: {done.stderr.strip()[-200:]}")
    return directory
