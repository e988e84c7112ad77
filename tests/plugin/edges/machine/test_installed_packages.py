from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.edges.machine.installed_packages import installed_packages


def test_another_version_of_any_package_is_another_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = installed_packages()
    assert before == installed_packages()
    package = tmp_path / "odd-1.0.dist-info" / "METADATA"
    package.parent.mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    found = set()
    for version in ("1.0", "1.1"):
        package.write_text(f"Metadata-Version: 2.1\nName: odd\nVersion: {version}\n")
        found.add(installed_packages())
    assert len(found | {before}) == 3
