"""The place where plugins are looked for, and what becomes of one that cannot be loaded."""

import sys
from pathlib import Path

import pytest

from tests.plugins.registered_plugin import install_into, nothing_installed, register
from tunegate_cache.installed_plugins import Plugin, PluginError, find_plugins, load_plugin

GROUP = "tunegate.stores"
EXTRAS = Path(__file__).resolve().parents[2] / "plugin" / "extras"


def test_a_package_of_the_environment_is_found_by_its_entry_point(tmp_path: Path) -> None:
    register(tmp_path, "a_store-1.2", GROUP, "SQLite", "m:KIND")
    found = find_plugins(GROUP, (tmp_path,))
    assert found["SQLite"] == Plugin(name="SQLite", value="m:KIND", offered_by=("a-store 1.2",))
    assert list(found) == ["SQLite", "file", "memory", "s3"]


def test_a_group_that_nobody_registers_is_empty(tmp_path: Path) -> None:
    register(tmp_path, "a_store-1.2", GROUP, "sqlite", "m:KIND")
    assert find_plugins("tunegate.nothing", (tmp_path,)) == {}


def test_a_name_of_ours_stays_ours(tmp_path: Path) -> None:
    register(tmp_path, "a_store-1.2", GROUP, "s3", "m:KIND")
    register(tmp_path, "tunegate-0.0.1", GROUP, "file", "m:KIND")
    found = find_plugins(GROUP, (tmp_path,))
    assert found == find_plugins(GROUP, ())
    assert [plugin.offered_by[0].partition(" ")[0] for plugin in found.values()] == ["tunegate"] * 3


def test_two_packages_of_one_name_are_told_apart_by_nobody(tmp_path: Path) -> None:
    register(tmp_path, "a_store-1.2", GROUP, "sqlite", "m:KIND")
    register(tmp_path, "b_store-3", GROUP, "sqlite", "m:KIND")
    with pytest.raises(
        PluginError, match=r'^a-store 1\.2 and b-store 3 both register "sqlite"\. Un'
    ):
        load_plugin(find_plugins(GROUP, (tmp_path,))["sqlite"])


@pytest.mark.parametrize(
    "text", [b"\xff", b"no section", b"[tunegate.stores]\n[tunegate.stores]\n"]
)
def test_a_damaged_registration_registers_nothing(tmp_path: Path, text: bytes) -> None:
    register(tmp_path, "a_store-1.2", GROUP, "sqlite", "m:KIND")
    (tmp_path / "a_store-1.2.dist-info" / "entry_points.txt").write_bytes(text)
    assert find_plugins(GROUP, (tmp_path,)) == find_plugins(GROUP, ())


def test_a_checkout_registers_nothing_even_where_it_is_imported_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(tmp_path, "a_store-1.2", GROUP, "sqlite", "m:KIND")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert "sqlite" not in find_plugins(GROUP)


def test_the_environment_is_where_this_interpreter_installs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(tmp_path, "a_store-1.2", GROUP, "sqlite", "m:KIND")
    install_into(tmp_path, monkeypatch)
    assert "sqlite" in find_plugins(GROUP)


def test_an_extra_whose_sources_are_on_the_path_is_found_without_being_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Action runs from sources, and its workflow says which extras."""
    nothing_installed(tmp_path, monkeypatch)
    group = "tunegate.ci"
    assert "jenkins" not in find_plugins(group)
    monkeypatch.syspath_prepend(str(EXTRAS / "ci_hosts"))
    assert find_plugins(group)["jenkins"].offered_by[0].startswith("tunegate-ci-hosts ")


def test_sources_elsewhere_are_no_extras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_installed(tmp_path / "empty", monkeypatch)
    copy = tmp_path / "plugin" / "extras" / "ci_hosts"
    copy.mkdir(parents=True)
    (copy / "pyproject.toml").write_text((EXTRAS / "ci_hosts" / "pyproject.toml").read_text())
    monkeypatch.syspath_prepend(str(copy))
    assert "jenkins" not in find_plugins("tunegate.ci")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import absent_library", "ModuleNotFoundError: No module named 'absent_library'"),
        ("raise OSError('one\\ntwo')", "OSError: one two"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("OTHER = 1", "AttributeError: module 'failing_plugin' has no attribute 'KIND'"),
    ],
)
def test_a_plugin_that_fails_at_import_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    (tmp_path / "failing_plugin.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "failing_plugin", raising=False)
    plugin = Plugin(name="x", value="failing_plugin:KIND", offered_by=("a-store 1.2",))
    with pytest.raises(PluginError) as raised:
        load_plugin(plugin)
    sys.modules.pop("failing_plugin", None)
    assert str(raised.value) == f'a-store 1.2: "failing_plugin:KIND" cannot be loaded ({reason})'


_UNSPEAKABLE = """
class Odd(BaseException):
    def __str__(self):
        raise RuntimeError
raise Odd
"""


def test_what_a_plugin_raises_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "unspeakable_plugin.py").write_text(_UNSPEAKABLE)
    monkeypatch.syspath_prepend(str(tmp_path))
    plugin = Plugin(name="odd", value="unspeakable_plugin:KIND", offered_by=("odd 1",))
    with pytest.raises(PluginError, match=r"cannot be loaded \(Odd\)$"):
        load_plugin(plugin)


def test_what_a_plugin_prints_is_no_answer_of_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "talking_plugin.py").write_text("KIND = 1\nprint('hello')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    plugin = Plugin(name="talking", value="talking_plugin:KIND", offered_by=("talking 1",))
    assert load_plugin(plugin) == 1
    assert capsys.readouterr() == ("", "hello\n")
