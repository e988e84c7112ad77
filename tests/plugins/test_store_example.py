"""A store in a package of its own: installed, found by its scheme, checked by the rules, and used
by real commands, with no edit outside of that package."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.plugin_environment import PLUGINS, PluginEnvironment, page_of
from tests.support.small_onnx import conv_model, save
from tests.support.workspace import COMPILED, Workspace
from tunegate_cache.stores.conformance import STORE_RULES
from tunegate_cache.stores.store_kind import StoreKind

EXAMPLE = PLUGINS / "store_example"
ENOUGH_TRIALS = 6
"""The trials that leave no task to a later run: such a task is no exact hit."""
pytestmark = pytest.mark.e2e


class Shell:
    """A repository with a model that is new, so that nothing is compared,
    and a SQLite file for a cache."""

    def __init__(self, environment: PluginEnvironment, root: Path) -> None:
        self._environment = environment
        self.cache = root.parent / "cache.db"
        self.workspace = Workspace(
            root,
            COMPILED.replace("url: cache", f"url: sqlite://{self.cache}").replace(
                "trials: 2", f"trials: {ENOUGH_TRIALS}"
            ),
        )
        save(conv_model(channels=4, out=8, size=6), root / "models" / "new.onnx")
        self.workspace.commit()

    def json(self, *line: str) -> dict[str, Any]:
        done = self._environment.run("-m", "tunegate", *line, "--json", cwd=self.workspace.root)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def cache_use(self) -> dict[str, Any]:
        """Makes a plan, and returns what it says of the cache."""
        return dict(self.json("plan", "--base", "HEAD~1")["resolution"]["cache"])

    def found(self) -> set[str]:
        """The answers of the cache to the tasks of a plan."""
        resolution = self.json("plan", "--base", "HEAD~1")["resolution"]
        return {each["lookup"]["type"] for each in resolution["tasks"]}

    def failing(self, *line: str) -> tuple[int, str]:
        done = self._environment.run("-m", "tunegate", *line, cwd=self.workspace.root)
        return done.returncode, done.stderr


@pytest.fixture
def shell(environment: PluginEnvironment, tmp_path: Path) -> Shell:
    return Shell(environment, tmp_path / "w")


def test_the_example_passes_its_own_conformance_tests(
    environment: PluginEnvironment, tmp_path: Path
) -> None:
    environment.run_tests_of(EXAMPLE, tmp_path)


def test_a_second_run_finds_what_the_first_has_stored(shell: Shell) -> None:
    assert (shell.found(), shell.cache.is_file()) == ({"miss"}, True)
    shell.json("tune")
    assert shell.found() == {"exact"}
    contents = shell.json("cache", "stats")["contents"]
    assert 3 in {held["workloads"] for held in contents}, "beside the list of them"
    assert all(finding["ok"] for finding in shell.json("cache", "probe")["findings"])


def test_a_package_that_fails_at_import_costs_the_hits_and_one_line(tmp_path: Path) -> None:
    environment = PluginEnvironment(tmp_path / "e")
    environment.install_broken(EXAMPLE, "sqlite_store.py", tmp_path)
    shell = Shell(environment, tmp_path / "w")
    planned = shell.cache_use()
    assert planned["misses"] == {"store-unavailable": 3}
    assert planned["notes"][0] == (
        'cache: tunegate-store-example 1.0: "sqlite_store:SQLITE" cannot be loaded '
        "(ModuleNotFoundError: No module named 'a_library_that_is_not_here')"
    )
    code, told = shell.failing("cache", "stats")
    assert code == 4
    assert "cannot be loaded" in told


def test_the_page_about_adding_a_store_shows_this_package() -> None:
    page = page_of("A store", EXAMPLE, 3)
    for name in (*StoreKind.__struct_fields__, *(rule.name for rule in STORE_RULES)):
        assert f"`{name}`" in page or f"| {name} |" in page
