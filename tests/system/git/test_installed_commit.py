from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.house.sources import ROOT
from tunegate.system.git.installed_commit import InstalledCommit, installed_commit

PUBLIC = "https://github.com/tunegate/tunegate"
COMMIT = "1234567890abcdef1234567890abcdef12345678"
ASK = """
import msgspec
from tunegate.system.git.installed_commit import installed_commit
found = installed_commit()
print(msgspec.json.encode(found).decode() if found else "nobody knows")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    (made,) = WheelBuilder(str(ROOT)).build(directory=str(directory), versions=["standard"])
    return Path(made)


def test_an_editable_installation_is_the_commit_of_its_checkout() -> None:
    asked = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True)
    assert installed_commit() == InstalledCommit(source=PUBLIC, commit=asked.strip())


@pytest.mark.parametrize(
    ("stamp", "origin", "expected"),
    [
        (f"v1.2.3 {COMMIT}\n", {}, {"source": PUBLIC, "commit": COMMIT, "release": "v1.2.3"}),
        ("v1.2.3\n", {}, None),
        ("unreleased\n", {}, None),
        (
            "unreleased\n",
            {
                "url": "https://user:secret@example.com/o/n.git",
                "vcs_info": {"vcs": "git", "commit_id": COMMIT, "requested_revision": "main"},
            },
            {"source": "https://example.com/o/n", "commit": COMMIT, "release": ""},
        ),
        (
            "unreleased\n",
            {"url": "ssh://git@example.com/o/n", "vcs_info": {"commit_id": COMMIT}},
            None,
        ),
        ("unreleased\n", {"url": "file:///gone", "dir_info": {"editable": True}}, None),
        ("unreleased\n", {"url": "file:///gone", "dir_info": {}}, None),
    ],
)
def test_an_installation_is_what_its_distribution_says(
    stamp: str,
    origin: dict[str, object],
    expected: dict[str, str] | None,
    wheel: Path,
    tmp_path: Path,
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    (tmp_path / "tunegate" / "released.txt").write_text(stamp)
    (metadata,) = tmp_path.glob("*.dist-info")
    (metadata / "direct_url.json").write_text(json.dumps(origin))
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}){ASK}"
    done = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == (
        json.dumps(expected, separators=(",", ":")) if expected else "nobody knows"
    )


def test_the_repository_is_the_path_of_its_address() -> None:
    found = InstalledCommit(source="https://example.com/owner/name", commit=COMMIT)
    assert found.repository == "owner/name"
