"""Reading real repositories: odd names, odd places, and nothing left behind."""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
import onnx
import psutil
import pytest

from tests.support.git_repository import Checkout, clone, new_repository
from tests.support.models.external_data import lay_out, model_with_data
from tests.support.small_onnx import matmul_model
from tunegate.artifacts.changes import ModelVersion
from tunegate.errors import ModelError, RevisionError
from tunegate.ports import TreeEntry
from tunegate.system.git import repository as git_module
from tunegate.system.git.repository import GitRepository


@pytest.fixture
def origin(tmp_path: Path) -> Checkout:
    checkout = new_repository(tmp_path / "origin")
    checkout.commit({"a.onnx": b"first"})
    checkout.commit({"a.onnx": b"second"})
    return checkout


def version(revision: str, path: str) -> ModelVersion:
    return ModelVersion(
        revision=revision,
        path=path,
        content_digest="",
        graph_digest=None,
        storage="git",
        size_bytes=0,
    )


def test_a_data_file_may_be_named_twice_and_is_not_the_model(
    origin: Checkout, tmp_path: Path
) -> None:
    """Both ended the run of all models, as files that exist."""
    twice = onnx.load_from_string(model_with_data("w"))
    lay_out(twice.graph.initializer.add(name="v"), "./w")
    own = model_with_data("own.onnx")
    told = origin.commit({"m.onnx": twice.SerializeToString(), "w": b"w", "own.onnx": own})
    repository = GitRepository(origin.path)
    assert repository.export_model(version(told, "m.onnx"), tmp_path / "m").is_file()
    with pytest.raises(ModelError, match=r"^own\.onnx: its external data file is itself"):
        repository.export_model(version(told, "own.onnx"), tmp_path / "own")


@pytest.mark.parametrize("place", ["empty", "no/such/directory"])
def test_a_directory_without_a_repository_is_one_clear_line(tmp_path: Path, place: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RevisionError) as raised:
        GitRepository(tmp_path / place)
    assert str(raised.value) == (
        f"{tmp_path / place}: not a git repository with a working tree. "
        "Run inside one, or name it with --repository."
    )


def test_a_repository_of_another_user_says_what_to_run(
    origin: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(RevisionError) as raised:
        GitRepository(origin.path)
    assert str(raised.value) == (
        f"{origin.path}: belongs to another user, so git does not read it. "
        f"Run: git config --global --add safe.directory {origin.path}"
    )


def test_any_revision_is_read(origin: Checkout) -> None:
    repository = GitRepository(origin.path)
    assert repository.read("HEAD~1", "a.onnx") == b"first"
    assert repository.read("HEAD", "a.onnx") == b"second"


def test_a_file_that_is_not_there_is_named(origin: Checkout) -> None:
    with pytest.raises(RevisionError, match=r"^b.onnx: not in HEAD, or its content"):
        GitRepository(origin.path).read("HEAD", "b.onnx")


def test_files_of_no_revision_are_refused(origin: Checkout) -> None:
    with pytest.raises(RevisionError, match="cannot be listed"):
        GitRepository(origin.path).files("f" * 40)


def test_a_name_that_is_not_text_is_shown_with_its_bytes(origin: Checkout) -> None:
    origin.commit({os.fsdecode(b"\xff.onnx"): b"odd"})
    repository = GitRepository(origin.path)
    assert "\\xff.onnx" in {entry.path for entry in repository.files("HEAD")}
    with pytest.raises(RevisionError, match=r"xff.onnx: its name is not UTF-8"):
        repository.read("HEAD", "\\xff.onnx")


def test_a_submodule_is_a_repository_of_its_own(origin: Checkout, tmp_path: Path) -> None:
    other = new_repository(tmp_path / "other")
    commit = other.commit({"m.onnx": b"m"})
    allow = ("-c", "protocol.file.allow=always")
    origin.git(*allow, "submodule", "-q", "add", str(other.path), "sub")
    repository = GitRepository(origin.path / "sub")
    assert repository.root == origin.path / "sub"
    assert repository.revisions(None, None).head == commit
    assert repository.read("HEAD", "m.onnx") == b"m"


def test_a_worktree_has_its_own_head(origin: Checkout, tmp_path: Path) -> None:
    origin.git("worktree", "add", "-q", "--detach", str(tmp_path / "tree"), "HEAD~1")
    repository = GitRepository(tmp_path / "tree")
    assert repository.root == tmp_path / "tree"
    assert repository.read("HEAD", "a.onnx") == b"first"
    assert repository.revisions("main", None).head == origin.git("rev-parse", "main~1")


def test_a_bare_repository_is_refused(origin: Checkout, tmp_path: Path) -> None:
    """A directory of a checkout may have its shape, so nothing of that shape is taken."""
    bare = clone(origin, tmp_path / "bare.git", "--bare")
    with pytest.raises(RevisionError, match="not a git repository with a working tree"):
        GitRepository(bare.path)


def test_inside_a_hook_of_another_repository_ours_is_read(
    origin: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = new_repository(tmp_path / "other")
    other.commit({"a.onnx": b"other"})
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.path / ".git" / "index"))
    monkeypatch.setenv("GIT_ICASE_PATHSPECS", "1")
    assert GitRepository(origin.path).entry("HEAD", "A.onnx") is None
    assert GitRepository(origin.path).read("HEAD", "a.onnx") == b"second"


def test_sizes_are_those_of_the_blobs_that_can_be_had(origin: Checkout) -> None:
    repository = GitRepository(origin.path)
    (entry,) = repository.files("HEAD")
    assert repository.sizes([entry.blob, "f" * 40]) == {entry.blob: len(b"second")}
    assert repository.sizes([]) == {}


def test_the_users_work_is_left_as_it_is(origin: Checkout) -> None:
    origin.commit({"a.onnx": matmul_model().SerializeToString()})
    (origin.path / "a.onnx").write_bytes(b"not committed")
    (origin.path / "staged").write_bytes(b"staged")
    (origin.path / "untracked").write_bytes(b"untracked")
    origin.git("add", "staged")
    before = state(origin)
    repository = GitRepository(origin.path)
    repository.revisions("HEAD~1", None)
    repository.files("HEAD")
    repository.export_model(version("HEAD", "a.onnx"), origin.path.parent / "elsewhere")
    assert state(origin) == before


def test_no_child_process_is_left(origin: Checkout) -> None:
    repository = GitRepository(origin.path)
    for _ in range(3):
        repository.revisions(None, None)
        repository.files("HEAD")
        repository.read("HEAD", "a.onnx")
    names = [child.name() for child in psutil.Process().children(recursive=True)]
    assert "git" not in names


def test_an_exported_model_lies_beside_its_data(origin: Checkout, tmp_path: Path) -> None:
    model = model_with_data("data/w.bin")
    origin.commit({"models/m.onnx": model, "models/data/w.bin": b"\0" * 1024})
    written = GitRepository(origin.path).export_model(
        version("HEAD", "models/m.onnx"), tmp_path / "out"
    )
    assert written == tmp_path / "out" / "m.onnx"
    assert written.read_bytes() == model
    assert (tmp_path / "out" / "data" / "w.bin").read_bytes() == b"\0" * 1024


def test_missing_data_of_a_model_is_named(origin: Checkout, tmp_path: Path) -> None:
    commit = origin.commit({"models/m.onnx": model_with_data("w.bin")})
    with pytest.raises(ModelError) as raised:
        GitRepository(origin.path).export_model(version(commit, "models/m.onnx"), tmp_path / "out")
    assert str(raised.value) == (
        f"models/m.onnx: its data file models/w.bin is not in {commit[:12]}. "
        f"Commit it (also when it is stored by LFS or DVC)."
    )


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08\x08:\x10abc"])
def test_a_damaged_model_is_one_clear_line(
    origin: Checkout, tmp_path: Path, content: bytes
) -> None:
    origin.commit({"models/m.onnx": content})
    with pytest.raises(ModelError, match=r"^models/m.onnx: (not )?an ONNX file.*Export it again.$"):
        GitRepository(origin.path).export_model(version("HEAD", "models/m.onnx"), tmp_path / "out")


def test_data_outside_the_models_directory_is_never_read(origin: Checkout, tmp_path: Path) -> None:
    origin.commit({"models/m.onnx": model_with_data("../../secret")})
    with pytest.raises(ModelError, match="lies outside the model's directory"):
        GitRepository(origin.path).export_model(version("HEAD", "models/m.onnx"), tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["m.onnx"]


def state(checkout: Checkout) -> list[str]:
    """Everything of a repository and its working tree that a person can see."""
    status = checkout.git("--no-optional-locks", "status", "--porcelain")
    files = [path for path in checkout.path.rglob("*") if path.is_file()]
    seen = [f"{path} {path.stat().st_mtime_ns}" for path in files]
    return sorted([*seen, status, checkout.git("show-ref")])


def test_a_text_without_end_is_not_read(origin: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_module, "MAX_COMMITTED_TEXT_BYTES", 2**20)
    head = origin.commit({"tunegate.yaml": b"#" * 2_000_000})
    with pytest.raises(RevisionError, match=r"^tunegate\.yaml: over 1 MiB"):
        GitRepository(origin.path).read(head, "tunegate.yaml")


def test_a_model_that_does_not_fit_into_memory_is_not_looked_into(
    origin: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two gigabytes of zeros are two megabytes in git."""
    origin.commit({"models/m.onnx": b"\0" * 2_000_000})
    monkeypatch.setattr(git_module, "available_bytes", lambda: 7_000_000)
    large = msgspec.structs.replace(version("HEAD", "models/m.onnx"), size_bytes=2_000_000)
    with pytest.raises(ModelError, match=r"^models/m.onnx: has 0\.0 GB: there is not the memory"):
        GitRepository(origin.path).content(large)


class Counting(GitRepository):
    """How often a tree is listed."""

    listed = 0

    def files(self, revision: str) -> Sequence[TreeEntry]:
        self.listed += 1
        return super().files(revision)


def test_the_attributes_of_a_revision_are_looked_for_once(origin: Checkout) -> None:
    commit = origin.commit({".gitattributes": b"*.onnx text eol=crlf"})
    repository = Counting(origin.path)
    for _ in range(3):
        assert repository.conversions(commit, ["a.onnx"]) == {"a.onnx": "eol=crlf"}
    assert repository.listed == 1
