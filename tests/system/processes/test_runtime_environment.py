"""Environments that the user named: what is read of them, and which are refused."""

import json
import sysconfig
import venv
from pathlib import Path

import pytest

from tunegate.errors import ConfigError
from tunegate.system.processes.runtime_environment import differences, read_environment


def make(directory: Path, packages: dict[str, tuple[str, str]]) -> Path:
    """An environment with these packages: their versions, and what each requires."""
    venv.create(directory, with_pip=False)
    (place,) = directory.glob("lib/*/site-packages")
    for name, (version, needs) in packages.items():
        required = f"Requires-Dist: {needs}\n" if needs else ""
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}"
        (place / f"{name}-{version}.dist-info").mkdir()
        (place / f"{name}-{version}.dist-info" / "METADATA").write_text(text)
    return directory


def test_the_packages_of_a_runtime_are_those_that_it_requires_and_so_on(tmp_path: Path) -> None:
    packages = {
        "fast_runtime": ("1.2", "arrays>=1"),
        "arrays": ("2.0", "plotting; extra == 'plots'"),
        "plotting": ("3.0", ""),
    }
    found = read_environment(make(tmp_path, packages), "Fast", ["fast-runtime"])
    assert found.version == "1.2"
    assert found.packages == {"arrays": "2.0", "fast-runtime": "1.2"}
    assert found.others == {"plotting": "3.0"}


def test_packages_that_differ_are_named_with_both_versions() -> None:
    base, head = {"a": "1", "b": "1", "c": "1"}, {"a": "2", "b": "1", "d": "1"}
    assert differences(base, head) == ("a 1 -> 2", "c 1 -> none", "d none -> 1")


def test_a_directory_that_is_no_environment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no virtual environment"):
        read_environment(tmp_path, "Fast", ["fast"])


def test_an_environment_without_the_runtime_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Fast is not installed there"):
        read_environment(make(tmp_path, {"other": ("1", "")}), "Fast", ["fast"])


def test_an_environment_of_another_python_is_refused(tmp_path: Path) -> None:
    described = {
        "python": "cpython 3.7",
        "platform": sysconfig.get_platform(),
        "packages": {},
        "owners": {},
    }
    stands_in(tmp_path, f"echo '{json.dumps(described)}'")
    with pytest.raises(ConfigError, match=r"is for cpython 3\.7 on .*Make it with the same"):
        read_environment(tmp_path, "Fast", ["fast"])


def test_an_environment_whose_python_fails_says_why(tmp_path: Path) -> None:
    stands_in(tmp_path, "echo broken link >&2; exit 1")
    with pytest.raises(ConfigError, match="broken link"):
        read_environment(tmp_path, "Fast", ["fast"])


def stands_in(directory: Path, line: str) -> None:
    """A program in the place of the environment's Python."""
    program = directory / "bin" / "python"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{line}\n")
    program.chmod(0o755)
