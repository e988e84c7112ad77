"""What is uploaded: the wheel and the source distribution, as a release builds them."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from tests.house.sources import ROOT

MAX_FILE_BYTES = 500_000
"""The largest is the prior of the cost model."""
TOP = {
    *("action", "cache", "plugin"),
    *(".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "SECURITY.md"),
    *("action.yml", "pyproject.toml"),
}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(SdistBuilder(str(ROOT)), tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(WheelBuilder(str(ROOT)), tmp_path_factory.mktemp("wheel"))


def test_the_source_distribution_has_what_a_build_needs_and_nothing_else(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        files = [member for member in archive.getmembers() if member.isfile()]
    names = [file.name.split("/", 1)[1] for file in files]
    assert {name.split("/")[0] for name in names} == TOP
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    ours = set(tracked.stdout.decode().split("\0"))
    assert set(names) - ours <= {"PKG-INFO"}  # nothing that only lies in this checkout
    assert all(file.size <= MAX_FILE_BYTES for file in files)


def test_the_wheel_of_the_source_distribution_is_that_of_the_repository(
    sdist: Path, wheel: Path, tmp_path: Path
) -> None:
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from 3.11.4 on
        archive.extractall(tmp_path / "source")
    (source,) = (tmp_path / "source").iterdir()
    assert digests(built(WheelBuilder(str(source)), tmp_path)) == digests(wheel)


def test_both_hold_the_core_alone(sdist: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packages = {name.split("/")[0] for name in archive.namelist()}
    core = {"tunegate", "tunegate_action", "tunegate_cache"}
    assert {name for name in packages if not name.endswith(".dist-info")} == core
    with tarfile.open(sdist) as archive:
        assert not [name for name in archive.getnames() if "/extras/" in name]


def test_an_extra_is_a_wheel_of_its_own_without_its_tests(tmp_path: Path) -> None:
    for extra in ROOT.glob("plugin/extras/*/pyproject.toml"):
        with zipfile.ZipFile(built(WheelBuilder(str(extra.parent)), tmp_path)) as archive:
            packages = {name.split("/")[0] for name in archive.namelist()}
        packages = {name for name in packages if not name.endswith(".dist-info")}
        assert packages == {f"tunegate_{extra.parent.name}"}


def test_its_metadata_is_whole_and_its_page_has_no_broken_link(wheel: Path) -> None:
    metadata = metadata_of(wheel)
    assert metadata["License-Expression"] == "Apache-2.0"
    urls = dict(line.split(", ") for line in metadata.get_all("Project-URL", []))
    assert set(urls) == {"Source", "Documentation", "Changelog", "Issues", "Security"}
    assert all(url.startswith(urls["Source"]) for url in urls.values())
    minimum = metadata["Requires-Python"].removeprefix(">=")
    assert f"Programming Language :: Python :: {minimum}" in metadata.get_all("Classifier", [])
    page = str(metadata.get_payload())
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert [link for link in links if not re.match(r"https://|#", link)] == []
    assert f"{urls['Source']}/blob/v{metadata['Version']}/docs/commands.md" in links


@pytest.mark.pipelines
def test_twine_takes_both(sdist: Path, wheel: Path) -> None:
    twine = Path(sys.executable).parent / "twine"
    done = subprocess.run(
        [twine, "--no-color", "check", "--strict", sdist, wheel],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.count("PASSED")) == (0, 2), done.stdout


def built(builder: SdistBuilder | WheelBuilder, directory: Path) -> Path:
    (made,) = builder.build(directory=str(directory), versions=["standard"])
    return Path(made)


def digests(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))
