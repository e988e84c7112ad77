"""The project says the same everywhere, and nothing of the machine it was written on."""

from __future__ import annotations

import re
import tomllib

import tunegate
from tests.house.sources import OURS, ROOT, name_of


def test_no_page_or_program_names_the_machine_it_was_written_on() -> None:
    project = re.compile(r"/(work|root|home/[a-z]+)/")
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    naming = [name_of(path) for path in OURS + pages if project.search(path.read_text())]
    assert not naming


def test_the_version_is_said_once_and_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == tunegate.__version__
