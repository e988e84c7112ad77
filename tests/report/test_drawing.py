from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SHOWS = (
    "from tunegate.report.svg import load_matplotlib; load_matplotlib(); "
    "import os, matplotlib; print(matplotlib.rcParams['font.size'], os.getcwd())"
)


@pytest.mark.parametrize("settings", [b"font.size: 77\n", b"\xff", b"backend: module://planted\n"])
def test_settings_beside_the_models_are_not_read(tmp_path: Path, settings: bytes) -> None:
    (tmp_path / "matplotlibrc").write_bytes(settings)
    done = subprocess.run(
        [sys.executable, "-c", SHOWS], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"10.0 {tmp_path}\n"
    assert done.stderr == ""
