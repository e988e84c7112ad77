"""Trees of which a checkout writes one file, and git reads another by its path."""

import hashlib
import zlib
from pathlib import Path

import pytest

from tests.support.git_repository import Checkout, new_repository
from tunegate.errors import RevisionError
from tunegate.regular_files import working_tree
from tunegate.system.git.checkout import first_tracked
from tunegate.system.git.process import git_environment, is_of_a_fetch
from tunegate.system.git.repository import GitRepository

Entries = list[tuple[bytes, bytes, str]]
FILE, DIRECTORY = b"100644", b"40000"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = new_repository(tmp_path / "r")
    made.commit({"models/m.onnx": b"fast", "slow": b"slow", "models.md": b"text"})
    return made


def tree_of(checkout: Checkout, entries: Entries) -> str:
    """Writes a tree as git itself would not."""
    body = b"".join(b"%s %s\0%s" % (mode, name, bytes.fromhex(i)) for mode, name, i in entries)
    content = b"tree %d\0%s" % (len(body), body)
    digest = hashlib.sha1(content, usedforsecurity=False).hexdigest()
    place = checkout.path / ".git" / "objects" / digest[:2] / digest[2:]
    place.parent.mkdir(exist_ok=True)
    if not place.exists():
        place.write_bytes(zlib.compress(content))
    return digest


def problem(checkout: Checkout, tree: str) -> str:
    commit = checkout.git("commit-tree", "-m", "odd", tree)
    with pytest.raises(RevisionError) as raised:
        GitRepository(checkout.path).files(commit)
    message, commit = str(raised.value), commit[:12]
    assert message.startswith(f"{commit}: ")
    assert message.endswith("`git fsck` calls it broken. Commit the files anew.")
    return message.removeprefix(f"{commit}: ").partition(", so a checkout")[0]


def ids(checkout: Checkout) -> tuple[str, str, str]:
    names = ("HEAD:models/m.onnx", "HEAD:slow", "HEAD:models")
    fast, slow, models = (checkout.git("rev-parse", name) for name in names)
    return fast, slow, models


def test_two_entries_of_one_name_are_refused(checkout: Checkout) -> None:
    fast, slow, _ = ids(checkout)
    inside = tree_of(checkout, [(FILE, b"m.onnx", fast), (FILE, b"m.onnx", slow)])
    tree = tree_of(checkout, [(DIRECTORY, b"models", inside)])
    assert problem(checkout, tree) == "models has two entries of the name 'm.onnx'"


@pytest.mark.parametrize("is_first", [True, False])
def test_a_path_as_the_name_of_an_entry_is_refused(checkout: Checkout, is_first: bool) -> None:
    _, slow, models = ids(checkout)
    entries = [(DIRECTORY, b"models", models), (FILE, b"models/m.onnx", slow)]
    tree = tree_of(checkout, entries[::-1] if is_first else entries)
    expected = "the root has an entry of the name 'models/m.onnx', which is none"
    assert problem(checkout, tree) == expected


@pytest.mark.parametrize("name", [b".", b"..", b".git", b".GIT"])
def test_a_name_that_no_file_has_is_refused(checkout: Checkout, name: bytes) -> None:
    fast, _, _ = ids(checkout)
    assert "which is none" in problem(checkout, tree_of(checkout, [(FILE, name, fast)]))


def test_a_tree_out_of_order_is_refused(checkout: Checkout) -> None:
    """Git stops looking for a name where it should have stood."""
    fast, slow, models = ids(checkout)
    tree = tree_of(checkout, [(FILE, b"z", fast), (DIRECTORY, b"models", models)])
    assert problem(checkout, tree) == "the root has its entry 'models' in a wrong place"
    tree = tree_of(checkout, [(DIRECTORY, b"models", models), (FILE, b"models.md", slow)])
    assert problem(checkout, tree) == "the root has its entry 'models.md' in a wrong place"


def test_what_git_writes_is_sound(checkout: Checkout) -> None:
    names = {"a-b": b"", "a.b": b"", "a/b/c": b"", "a0": b"", "models-2/x": b"", "\u00fc": b""}
    commit = checkout.commit(names)
    checkout.git("update-index", "--add", "--cacheinfo", f"160000,{commit},a.sub")
    checkout.git("commit", "-q", "-m", "a submodule")
    repository = GitRepository(checkout.path)
    assert len(repository.files(checkout.git("rev-parse", "HEAD"))) == len(names) + 4
    assert len(repository.files(commit)) == len(names) + 3


def test_a_submodule_above_a_directory_has_all_that_is_in_it(tmp_path: Path) -> None:
    checkout = new_repository(tmp_path / "checkout")
    commit = checkout.commit({"other": b"x"})
    checkout.git("update-index", "--add", "--cacheinfo", f"160000,{commit},deps/sub")
    for inside in ("deps/sub", "deps/sub/cache", "deps/sub/a/b"):
        assert first_tracked(checkout.path, checkout.path / inside) == "deps/sub"
    assert first_tracked(checkout.path, checkout.path / "deps") == "deps/sub"
    assert first_tracked(checkout.path, checkout.path / "deps/other") == ""


def test_files_that_only_lie_there_are_none(tmp_path: Path) -> None:
    checkout = new_repository(tmp_path / "checkout")
    checkout.commit({"other": b"x"})
    (checkout.path / "cache").mkdir()
    (checkout.path / "cache" / "a").write_bytes(b"x")
    assert first_tracked(checkout.path, checkout.path / "cache") == ""


def test_the_nearest_checkout_counts(tmp_path: Path) -> None:
    inner = tmp_path / "checkout" / "sub"
    inner.mkdir(parents=True)
    (tmp_path / "checkout" / ".git").mkdir()
    (inner / ".git").write_text("gitdir: elsewhere")
    assert working_tree(inner / "deep") == inner
    assert working_tree(tmp_path / "checkout" / "deep") == tmp_path / "checkout"


ROOT = Path("/srv/project")


@pytest.mark.parametrize(
    "name", ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_EXTERNAL_DIFF", "GIT_CONFIG"]
)
def test_variables_of_another_repository_are_left_out(name: str) -> None:
    assert name not in git_environment(ROOT, {name: "/elsewhere"})


def test_git_asks_nobody_and_looks_no_further_than_the_root() -> None:
    found = git_environment(ROOT, {"GIT_TERMINAL_PROMPT": "1", "HOME": "/home"})
    assert found["GIT_TERMINAL_PROMPT"] == "0"
    assert found["GIT_CEILING_DIRECTORIES"] == "/srv"
    assert (found["LC_ALL"], found["HOME"]) == ("C", "/home")


def test_no_address_is_a_command_even_where_the_job_allows_it() -> None:
    protocols = "GIT_ALLOW_PROTOCOL"
    assert git_environment(ROOT, {})[protocols] == "file:git:http:https:ssh"
    assert git_environment(ROOT, {protocols: "https:ext:fd:lfs"})[protocols] == "https:lfs"


@pytest.mark.parametrize(
    ("key", "is_kept"),
    [
        ("credential.helper", True),
        ("core.sshCommand", True),
        ("HTTP.proxy", True),
        ("hook.mine.command", True),
        ("core.hooksPath", False),
        ("diff.external", False),
        ("filter.lfs.smudge", False),
    ],
)
def test_a_fetch_keeps_what_names_servers_and_nothing_else(key: str, is_kept: bool) -> None:
    assert is_of_a_fetch(key) == is_kept
