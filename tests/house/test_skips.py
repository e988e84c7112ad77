"""Whoever runs the tests learns what was skipped, and the one command that changes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.house.sources import ROOT
from tests.support.programs import packages

SKIPPING = """
import pytest
from tests.support.programs import require

def test_browser():
    require("chromium", "chromedriver")

@pytest.mark.parametrize("number", [1, 2])
def test_ceph(number):
    require("radosgw")

def test_device():
    pytest.skip("there is no CUDA device")

def test_python():
    require()
"""


def test_a_run_ends_with_the_reasons_and_the_command(tmp_path: Path) -> None:
    lines = last_lines(tmp_path, SKIPPING, environment={"PATH": str(tmp_path)})
    assert "1 passed, 4 skipped" in lines[-1]
    (start,) = (number for number, line in enumerate(lines) if "skipped on this machine" in line)
    assert [line.strip() for line in lines[start + 1 : start + 6]] == [
        "2 x not installed: radosgw",
        "1 x not installed: chromium, chromedriver",
        "1 x there is no CUDA device",
        "To run these tests too, install what is missing (Debian, Ubuntu):",
        "make programs    # apt-get install chromium chromium-driver radosgw",
    ]


def test_a_run_that_skips_nothing_says_nothing_of_it(tmp_path: Path) -> None:
    lines = last_lines(tmp_path, "def test_nothing(): pass", environment={})
    assert not any("skipped" in line for line in lines)


def test_each_program_has_one_package_and_a_place_in_the_order() -> None:
    assert list(packages()) == sorted(packages())


def last_lines(tmp_path: Path, source: str, environment: dict[str, str]) -> list[str]:
    test = tmp_path / "test_some.py"
    test.write_text(source)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.support.skips",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), "--basetemp", str(tmp_path / "inner"), str(test)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()
