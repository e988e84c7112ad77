"""The programs of npm that run or lint the files of pipelines, as the lock file has them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import require

HERE = Path(__file__).resolve().parent


def installed_npm_tools(directory: Path) -> Path:
    """The folder of the programs. Skips the test where npm cannot install them."""
    require("npm")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, directory)
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
    return directory / "node_modules" / ".bin"
