from __future__ import annotations

from pathlib import Path

from tunegate.runtimes.tvm import health as requirements


def test_the_versions_are_those_of_the_project() -> None:
    project = (Path(__file__).resolve().parents[3] / "pyproject.toml").read_text()
    for distribution, version in requirements.PINNED.items():
        assert f'"{distribution}=={version}"' in project
