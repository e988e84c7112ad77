"""What the core says of its extras is what each of them says of itself."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.house.sources import ROOT
from tunegate.known_extras import GROUPS, KNOWN_EXTRAS

EXTRAS = sorted(path.parent for path in ROOT.glob("plugin/extras/*/pyproject.toml"))


def project_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return found


def test_there_is_an_extra() -> None:
    assert ROOT / "plugin" / "extras" / "ci_hosts" in EXTRAS


@pytest.mark.parametrize("extra", EXTRAS, ids=lambda path: path.name)
class TestExtra:
    def test_it_is_named_after_its_folder_and_takes_this_version_of_the_core(
        self, extra: Path
    ) -> None:
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
        ours = {group: set(registered[group]) for group in groups}
        assert told == ours

    def test_it_has_a_page_a_lock_and_types(self, extra: Path) -> None:
        assert (extra / "README.md").read_text().startswith("# ")
        assert f"plugin/extras/{extra.name}/README.md" in (ROOT / "docs/extras.md").read_text()
        assert (extra / f"tunegate_{extra.name}" / "py.typed").exists()
        lock = (extra / "requirements.lock").read_text().lower()
        for needed in project_of(extra)["dependencies"]:
            assert needed.startswith("tunegate") or needed.split(">")[0].lower() in lock

    def test_an_import_contract_keeps_it_from_the_core_and_from_the_others(
        self, extra: Path
    ) -> None:
        settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
        first = next(c for c in settings["contracts"] if c["layers"][-1] == "tunegate_cache")
        package = f"tunegate_{extra.name}"
        assert package in settings["root_packages"]
        assert package in first["layers"][0].split(" | ")
