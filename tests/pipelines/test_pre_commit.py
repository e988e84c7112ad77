"""The hook, by pre-commit itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.sources import ROOT

pytestmark = pytest.mark.pipelines

PRE_COMMIT = str(Path(sys.executable).parent / "pre-commit")


def test_the_manifest_is_valid() -> None:
    command = [PRE_COMMIT, "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
