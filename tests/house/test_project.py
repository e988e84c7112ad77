"""The project says the same everywhere, and nothing of the machine it was written on."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

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


def test_whatever_names_the_action_pins_it_and_means_our_repository() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ours = urlsplit(project["urls"]["Source"]).path.strip("/")
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.yml")]
    pages.append(ROOT / "plugin" / "tunegate" / "cli" / "handlers" / "workflow.yml")
    named = re.compile(r"(?:uses: |git\+https://[^/\s]+/)([\w.-]*tunegate[\w./-]*)@(\S+)")
    found = [match for page in pages for match in named.findall(page.read_text())]
    assert len(found) >= 5
    assert {name for name, _ in found} == {ours}
    assert all(re.fullmatch(r'[0-9a-f]{40}["`]?', commit) for _, commit in found)


def test_nothing_installs_the_project_by_a_name_without_a_version() -> None:
    """Anybody could register it before the first release."""
    installs = re.compile(r"pip install[^\n]*\btunegate(?:\[\w+\])?(?![\w\[/.=-]| @|==)")
    naming = [name_of(path) for path in texts() if installs.search(path.read_text())]
    assert not naming


def texts() -> list[Path]:
    files = [path for path in (ROOT / "plugin").rglob("*") if path.suffix in {".yml", ".yaml"}]
    return [*filter(Path.is_file, (ROOT / "examples").iterdir()), *files]
