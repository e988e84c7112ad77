from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

import tunegate
from tunegate.errors import OutputError
from tunegate.system.output.owned_directory import (
    MARKER,
    is_marked,
    is_marked_here,
    mark,
    refuse_links,
)

SHARED_WITH_THE_ACTION = (
    "errors.py",
    "regular_files.py",
    "system/git/working_tree.py",
    "system/output/owned_directory.py",
    "system/output/abandoned_work.py",
)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "checkout"
    (root / ".git").mkdir(parents=True)
    monkeypatch.chdir(root)
    return root


def test_a_directory_that_does_not_exist_yet_is_no_link(checkout: Path) -> None:
    refuse_links(Path(".tunegate"))
    refuse_links(checkout / "a" / "b")


@pytest.mark.parametrize("out", [".tunegate", "linked/.tunegate", "./x/../linked/y"])
def test_no_link_of_a_checkout_is_followed(out: str, checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (checkout / "x").mkdir()
    for name in (".tunegate", "linked"):
        (checkout / name).symlink_to(tmp_path / "precious")
    for named in (Path(out), checkout / out):
        with pytest.raises(OutputError, match="is a link, and none is followed"):
            refuse_links(named)


def test_a_link_that_leads_nowhere_is_refused_too(checkout: Path) -> None:
    (checkout / ".tunegate").symlink_to("nothing")
    with pytest.raises(OutputError, match="is a link"):
        refuse_links(Path(".tunegate"))


def test_below_the_current_directory_every_link_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout that was unpacked has no `.git`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "precious").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "precious")
    with pytest.raises(OutputError, match="is a link"):
        refuse_links(Path("linked/out"))


def test_a_link_into_a_checkout_does_not_hide_the_links_in_it(
    checkout: Path, tmp_path: Path
) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "way").symlink_to(checkout)
    (checkout / "linked").symlink_to(tmp_path / "precious")
    refuse_links(tmp_path / "way" / ".tunegate")
    with pytest.raises(OutputError, match="is a link"):
        refuse_links(tmp_path / "way" / "linked" / ".tunegate")


def test_links_outside_of_checkouts_are_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "tmp").symlink_to(tmp_path / "scratch")
    refuse_links(tmp_path / "tmp" / "out")
    with pytest.raises(OutputError, match="is a link"):
        refuse_links(tmp_path / "tmp")


def test_a_marker_holds_for_the_directory_it_was_made_in(tmp_path: Path) -> None:
    out, copy = tmp_path / "out", tmp_path / "copy"
    out.mkdir()
    assert not is_marked(out)
    mark(out)
    shutil.copytree(out, copy)
    assert is_marked(out)
    assert is_marked_here(out)
    assert is_marked(copy)
    assert not is_marked_here(copy)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"tunegate": 2}', "\x00"])
def test_what_says_nothing_is_no_marker(text: str, tmp_path: Path) -> None:
    (tmp_path / MARKER).write_text(text)
    assert not is_marked(tmp_path)
    assert not is_marked_here(tmp_path)


def test_a_linked_marker_is_none(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    mark(out)
    (out / MARKER).rename(tmp_path / "elsewhere")
    (out / MARKER).symlink_to(tmp_path / "elsewhere")
    assert not is_marked(out)


@pytest.mark.parametrize("name", SHARED_WITH_THE_ACTION)
def test_what_the_action_shares_runs_on_the_python_of_any_runner(name: str) -> None:
    text = (Path(tunegate.__file__).parent / name).read_text()
    imported = {
        node.module
        for node in ast.walk(ast.parse(text, feature_version=(3, 8)))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tunegate")
    }
    files = {f"{module.removeprefix('tunegate.').replace('.', '/')}.py" for module in imported}
    assert files <= set(SHARED_WITH_THE_ACTION)
    assert "msgspec" not in text
