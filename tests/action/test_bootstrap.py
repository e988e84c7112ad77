"""The bootstrap makes a real environment, offline, from a wheelhouse and a lock with hashes."""

from __future__ import annotations

import hashlib
import os
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
METADATA = "Metadata-Version: 2.1\nName: tinydep\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture
def wheelhouse(tmp_path: Path) -> Path:
    """One wheel, and a lock that wants exactly it."""
    directory = tmp_path / "wheels"
    directory.mkdir()
    wheel = directory / "tinydep-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tinydep.py", "VALUE = 1\n")
        archive.writestr("tinydep-1.0.dist-info/METADATA", METADATA)
        archive.writestr("tinydep-1.0.dist-info/WHEEL", WHEEL)
        archive.writestr("tinydep-1.0.dist-info/RECORD", "")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (tmp_path / "tiny.lock").write_text(f"tinydep==1.0 --hash=sha256:{digest}\n")
    return directory


def bootstrap(tmp_path: Path, wheelhouse: Path) -> subprocess.CompletedProcess[str]:
    """Runs it as the action does; `tunegate_action` itself then lacks its dependencies."""
    return subprocess.run(
        [sys.executable, "-I", str(ROOT / "action" / "bootstrap.py"), "run"],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "RUNNER_TOOL_CACHE": str(tmp_path / "tools"),
            "TUNEGATE_LOCK": str(tmp_path / "tiny.lock"),
            "TUNEGATE_WHEELHOUSE": str(wheelhouse),
        },
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )


def environments(tmp_path: Path) -> list[Path]:
    return [p for p in (tmp_path / "tools" / "tunegate" / "env").iterdir() if p.is_dir()]


def test_an_environment_is_made_once_and_reused(tmp_path: Path, wheelhouse: Path) -> None:
    first = bootstrap(tmp_path, wheelhouse)
    assert (
        "No module named 'msgspec'" in first.stderr
    )  # it reached our code, in the new environment
    (made,) = environments(tmp_path)
    python = made / "bin" / "python"
    shown = subprocess.run(
        [python, "-c", "import tinydep; print(tinydep.VALUE)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == "1\n"
    before = (made / ".complete").stat().st_mtime_ns
    bootstrap(tmp_path, wheelhouse)
    assert environments(tmp_path) == [made]
    assert (made / ".complete").stat().st_mtime_ns == before


def test_a_wheel_with_another_hash_is_refused_in_one_line(tmp_path: Path, wheelhouse: Path) -> None:
    (tmp_path / "tiny.lock").write_text(f"tinydep==1.0 --hash=sha256:{'0' * 64}\n")
    done = bootstrap(tmp_path, wheelhouse)
    assert done.returncode == 4
    (line,) = [x for x in done.stdout.splitlines() if x.startswith("::error")]
    assert "could not be installed" in line


def test_a_half_made_environment_is_made_again(tmp_path: Path, wheelhouse: Path) -> None:
    bootstrap(tmp_path, wheelhouse)
    (made,) = environments(tmp_path)
    (made / ".complete").unlink()
    (made / "bin" / "python").unlink()
    bootstrap(tmp_path, wheelhouse)
    assert (made / "bin" / "python").exists()
    assert (made / ".complete").exists()


def lock_for(environment: dict[str, str], *, driver: Path) -> Path:
    """The bootstrap is a script, and no module of ours."""
    found = runpy.run_path(str(ROOT / "action" / "bootstrap.py"))["lock_for"](environment, driver)
    assert isinstance(found, Path)
    return found


def test_a_machine_with_a_gpu_gets_what_a_gpu_needs(tmp_path: Path) -> None:
    assert lock_for({}, driver=tmp_path / "missing").name == "run.lock"
    assert lock_for({}, driver=tmp_path).name == "gpu.lock"
    assert lock_for({}, driver=tmp_path).exists()
    assert lock_for({"TUNEGATE_LOCK": "/mine.lock"}, driver=tmp_path) == Path("/mine.lock")
