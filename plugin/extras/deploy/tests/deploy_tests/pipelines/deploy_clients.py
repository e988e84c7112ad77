"""The clients of MLflow and of the hub, in an environment of their own beside ours."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.house.sources import ROOT, SOURCE_ROOTS

READY = "TUNEGATE_TEST_CLIENTS"
"""The variable with an environment that has them already; without it one is made."""


def environment_with_clients(directory: Path) -> Path:
    """Returns the `bin` of an environment with mlflow and huggingface_hub that sees our own."""
    made = os.environ.get(READY)
    place = Path(made or directory / "clients")
    python = place / "bin" / "python"
    if not made:
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        install = [str(python), "-m", "pip", "install", "-q", "mlflow", "huggingface_hub"]
        subprocess.run(install, check=True)
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]
    packages = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    seen = [sysconfig.get_paths()["purelib"], *(str(ROOT / root) for root in SOURCE_ROOTS)]
    Path(packages, "zz-tunegate.pth").write_text("\n".join([*seen, str(ROOT)]) + "\n")
    return place / "bin"
