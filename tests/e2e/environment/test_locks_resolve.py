"""The locks on every machine that is supported: each package has a wheel there."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from tunegate.cli.supported_machine import NEWEST, OLDEST

UV = Path(sys.executable).with_name("uv")
ROOT = Path(__file__).resolve().parents[3]
LOCKS = ROOT / "requirements"
EXTRAS = ROOT / "plugin" / "extras"
RUN = (
    *(LOCKS / name for name in ("run.lock", "run-onnxruntime.lock", "gpu.lock", "installer.lock")),
    EXTRAS / "deploy" / "clients.lock",
    EXTRAS / "upgrades" / "requirements.lock",
)
PROCESSORS = ("x86_64", "aarch64")
BOUND = r"^([a-z0-9-]+)==\S+ ; python_full_version (<|>=) '3\.(\d+)'"
PYTHONS = [f"3.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1)]


@pytest.mark.pipelines
@pytest.mark.parametrize(("lock", "processor", "python"), [*product(RUN, PROCESSORS, PYTHONS)])
def test_a_lock_resolves_to_wheels(lock: Path, processor: str, python: str, tmp_path: Path) -> None:
    """The resolver takes nothing but wheels for glibc 2.28, with the hashes of the lock."""
    made = subprocess.run(
        [
            *(str(UV), "--no-config", "pip", "install", "--dry-run", "--require-hashes"),
            *("--only-binary", ":all:", "--target", str(tmp_path / "nothing")),
            *("--python-platform", f"{processor}-manylinux_2_28", "--python-version", python),
            *("-r", str(lock)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr[-2000:]
    assert "Would install" in made.stderr


@pytest.mark.parametrize("lock", sorted([*LOCKS.glob("*.lock"), *EXTRAS.glob("*/*.lock")]))
def test_every_distribution_of_a_lock_is_pinned_and_hashed(lock: Path) -> None:
    lines = lock.read_text().split("\n")
    for number, line in enumerate(lines):
        if line and not line.startswith((" ", "#")):
            assert re.fullmatch(r"[A-Za-z0-9._-]+(\[[a-z,]+\])?==\S+( ; .+)? \\", line), line
            assert lines[number + 1].startswith("    --hash=sha256:")


def test_no_version_of_python_is_left_out_by_a_marker() -> None:
    """A package that some Pythons get in another version is there for each of them."""
    text = (LOCKS / "run.lock").read_text()
    found = re.findall(BOUND, text, re.MULTILINE)
    bounds: dict[str, set[tuple[str, str]]] = {}
    for name, sign, minor in found:
        bounds.setdefault(name, set()).add((sign, minor))
    for name, signs in bounds.items():
        assert {sign for sign, _ in signs} == {"<", ">="}, name
        assert len({minor for _, minor in signs}) == 1, name
