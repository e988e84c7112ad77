"""The project says the same everywhere, and nothing of the machine it was written on."""

import fnmatch
import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import tunegate
from tests.house.sources import OURS, ROOT, name_of
from tunegate.known_extras import GROUPS, KNOWN_EXTRAS


def test_no_page_or_program_names_the_machine_it_was_written_on() -> None:
    project = re.compile(r"/(work|root|home/[a-z]+)/")
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert not [name_of(path) for path in OURS + pages if project.search(path.read_text())]


def test_the_version_is_said_once_and_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == tunegate.__version__


def test_no_folder_of_tests_has_a_name_that_pytest_skips(request: pytest.FixtureRequest) -> None:
    """By default pytest skips each folder that is called build or dist."""
    skipped = request.config.getini("norecursedirs")
    folders = {
        folder
        for tests in request.config.getini("testpaths")
        for file in (ROOT / tests).rglob("test_*.py")
        for folder in file.relative_to(ROOT).parts[:-1]
    }
    assert "build" in folders
    assert not [each for each in folders for name in skipped if fnmatch.fnmatch(each, name)]


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
    assert not [name_of(path) for path in texts() if installs.search(path.read_text())]


def texts() -> list[Path]:
    files = [path for path in (ROOT / "plugin").rglob("*") if path.suffix in {".yml", ".yaml"}]
    return [*filter(Path.is_file, (ROOT / "examples").iterdir()), *files]


# What the core says of its extras is what each of them says of itself.

EXTRAS = sorted(path.parent for path in ROOT.glob("plugin/extras/*/pyproject.toml"))


def project_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return found


def test_there_is_an_extra() -> None:
    assert ROOT / "plugin" / "extras" / "ci_hosts" in EXTRAS


@pytest.mark.parametrize("extra", EXTRAS, ids=lambda path: path.name)
class TestExtra:
    def test_it_has_its_folders_name_and_takes_this_version_of_the_core(self, extra: Path) -> None:
        project, name = project_of(extra), extra.name.replace("_", "-")
        assert project["name"] == f"tunegate-{name}"
        assert any(
            each.startswith("tunegate") and each.endswith(">=0.1,<0.2")
            for each in project["dependencies"]
        )
        core = project_of(ROOT)
        needed = f"tunegate-{name}>=0.1,<0.2"
        assert needed in core["optional-dependencies"][name]
        assert core["version"].startswith("0.1.")

    def test_the_core_knows_what_it_offers(self, extra: Path) -> None:
        """Somebody who lacks it reads what to install."""
        name = extra.name.replace("_", "-")
        told = {
            group: set(known.offers.get(kind, ()))
            for known in KNOWN_EXTRAS
            if known.name == name
            for kind, group in GROUPS.items()
            if known.offers.get(kind)
        }
        registered = project_of(extra).get("entry-points", {})
        groups = registered.keys() & set(GROUPS.values())
        assert told == {group: set(registered[group]) for group in groups}

    def test_it_has_a_page_a_lock_and_types(self, extra: Path) -> None:
        assert (extra / "README.md").read_text().startswith("# ")
        assert f"plugin/extras/{extra.name}/README.md" in (ROOT / "docs/extras.md").read_text()
        assert (extra / f"tunegate_{extra.name}" / "py.typed").exists()
        lock = (extra / "requirements.lock").read_text().lower()
        for needed in project_of(extra)["dependencies"]:
            assert needed.startswith("tunegate") or needed.split(">")[0].lower() in lock

    def test_an_import_contract_keeps_it_from_core_and_others(self, extra: Path) -> None:
        settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
        first = next(c for c in settings["contracts"] if c["layers"][-1] == "tunegate_cache")
        package = f"tunegate_{extra.name}"
        assert package in settings["root_packages"]
        assert package in first["layers"][0].split(" | ")
