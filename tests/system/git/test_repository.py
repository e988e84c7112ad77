"""Reading real repositories: odd names, odd places, and nothing left behind."""

import os
import re
import shutil
import time
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import msgspec
import onnx
import psutil
import pytest

from tests.support.git_repository import Checkout, clone, new_repository
from tests.support.models import pointer_files
from tests.support.models.external_data import lay_out, model_with_data
from tests.support.small_onnx import matmul_model
from tunegate.artifacts.changes import ModelVersion, Revisions
from tunegate.config import Config, ModelConfig
from tunegate.errors import ModelError, RevisionError
from tunegate.models.reader import GitModelReader
from tunegate.ports import TreeEntry
from tunegate.review.detect import detect
from tunegate.system.git import checkout
from tunegate.system.git import process as git_process
from tunegate.system.git import repository as git_module
from tunegate.system.git.checkout import changes_bytes, conversions, is_safe, pattern_of
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


def test_a_data_file_may_be_named_twice_and_is_no_model(origin: Checkout, tmp_path: Path) -> None:
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
    assert "git" not in [child.name() for child in psutil.Process().children(recursive=True)]


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
    """A repository that counts how often it lists a tree, and reads a file alone."""

    listed = read_alone = 0

    def files(self, revision: str) -> Sequence[TreeEntry]:
        self.listed += 1
        return super().files(revision)

    def read(self, revision: str, path: str) -> bytes:
        self.read_alone += 1
        return super().read(revision, path)


def test_the_attributes_of_a_revision_are_looked_for_once(origin: Checkout) -> None:
    commit = origin.commit({".gitattributes": b"*.onnx text eol=crlf"})
    repository = Counting(origin.path)
    for _ in range(3):
        assert repository.conversions(commit, ["a.onnx"]) == {"a.onnx": "eol=crlf"}
    assert repository.listed == 1


# The data files of a model, of which there may be thousands.


def model_with_files(names: Sequence[str]) -> bytes:
    model = onnx.load_from_string(model_with_data(names[0]))
    for name in names[1:]:
        lay_out(model.graph.initializer.add(name=name), name)
    content: bytes = model.SerializeToString()
    return content


class Processes:
    """A `git` on the PATH that writes down each process, and runs the script before git."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch, script: str = "") -> None:
        self._log = place / "processes"
        (place / "bin").mkdir()
        program = place / "bin" / "git"
        lines = f"echo \"$*\" >> '{self._log}'\nreal={shutil.which('git')}\n{script}\n"
        program.write_text(f'#!/bin/sh\n{lines}exec "$real" "$@"\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    def taken(self) -> list[str]:
        lines = self._log.read_text().splitlines()
        self._log.unlink()
        return lines


@pytest.mark.parametrize("kept_by", ["git", "lfs", "dvc", "a stage", "both"])
def test_thousands_of_data_files_take_as_many_processes_as_two(
    origin: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_by: str
) -> None:
    repositories = []
    for count in (2, 40):
        contents = {f"d/w{i}": bytes([i % 7]) for i in range(count)} | {"a": b"", "b": b""}
        files = {"m.onnx": model_with_files([*contents]), ".gitattributes": b"*.x eol=crlf"}
        stage = [(name, pointer_files.md5_of(body)) for name, body in contents.items()]
        for name, body in contents.items():
            pointer_files.keep_in_lfs(origin, body)
            pointer_files.keep_in_dvc(origin, body)
            files |= {
                "git": {name: body},
                "both": {name: body},
                "lfs": {name: pointer_files.lfs_pointer_to(body)},
                "dvc": {f"{name}.dvc": pointer_files.dvc_file_of(name, body)},
                "a stage": {},
            }[kept_by]
        if kept_by in {"both", "a stage"}:
            outputs = "".join(f"  - {{path: {n}, md5: {md5}, hash: md5}}\n" for n, md5 in stage)
            files["all.dvc"] = f"outs:\n{outputs}".encode()
        repositories.append((GitRepository(origin.path), origin.commit(files), contents))
    git = Processes(tmp_path, monkeypatch)
    processes = []
    for repository, commit, contents in repositories:
        out = tmp_path / commit
        repository.export_model(version(commit, "m.onnx"), out)
        assert {name: (out / name).read_bytes() for name in contents} == contents
        processes.append(len(git.taken()))
    assert processes[0] == processes[1] < 20


def test_equal_data_files_are_one_on_the_disk(origin: Checkout, tmp_path: Path) -> None:
    """A blob of zeros is small in git, and a change can name it ten thousand times."""
    names = ["a", "b", "c/d"]
    files = {"m.onnx": model_with_files([*names, "./a"]), **dict.fromkeys(names, bytes(5000))}
    GitRepository(origin.path).export_model(version(origin.commit(files), "m.onnx"), tmp_path / "o")
    assert {(tmp_path / "o" / name).stat().st_nlink for name in names} == {3}


def test_a_git_that_ends_early_is_asked_for_the_rest(
    origin: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process has a limit of time, and may have to fetch every blob."""
    contents = {f"w{i}": bytes([i]) * 1000 for i in range(5)}
    commit = origin.commit({"m.onnx": model_with_files([*contents]), **contents})
    cut = '"$real" "$@" | head -c 2500; exit 1'
    git = Processes(tmp_path, monkeypatch, f'case "$*" in *--buffer*) {cut};; esac')
    GitRepository(origin.path).export_model(version(commit, "m.onnx"), tmp_path / "out")
    assert {name: (tmp_path / "out" / name).read_bytes() for name in contents} == contents
    assert sum("--buffer" in line for line in git.taken()) == 3


@pytest.mark.parametrize("kind", ["missing", "killed"])
def test_a_data_file_that_git_cannot_give_is_named(
    origin: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    files = {"m.onnx": model_with_files(["w", "v"]), "w": b"1" * 5000, "v": b"2" * 5000}
    commit = origin.commit(files)
    script = ""
    if kind == "missing":
        blob = origin.git("rev-parse", f"{commit}:v")
        (origin.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    else:
        cut = '"$real" "$@" | head -c 5200; exit 1'
        again = f"if [ -e '{tmp_path}/once' ]; then exit 1; fi; touch '{tmp_path}/once'"
        script = f'case "$*" in *--buffer*) {again}; {cut};; esac'
    Processes(tmp_path, monkeypatch, script)
    with pytest.raises(ModelError) as raised:
        GitRepository(origin.path).export_model(version(commit, "m.onnx"), tmp_path / "out")
    assert str(raised.value) == (
        "v: its content is not in this clone, and cannot be fetched. "
        f"This says why: git cat-file blob {commit[:12]}:v > /dev/null"
    )
    assert not (tmp_path / "out" / "v").exists()


def test_a_name_that_is_not_text_is_no_data_file_of_the_escaped_name(
    origin: Checkout, tmp_path: Path
) -> None:
    odd = {os.fsdecode(b"\xff"): b"odd"}
    commit = origin.commit({"m.onnx": model_with_files(["\\xff"]), **odd})
    with pytest.raises(ModelError, match=r"its data file \\xff is not in"):
        GitRepository(origin.path).export_model(version(commit, "m.onnx"), tmp_path / "out")
    first, _ = told(origin, commit)
    second, _ = told(origin, origin.commit({"\\xff": b"1"}))
    third, _ = told(origin, origin.commit({"\\xff": b"2"}))
    assert len({first.external, second.external, third.external}) == 3


def told(origin: Checkout, commit: str) -> tuple[ModelVersion, str]:
    reader = GitModelReader(GitRepository(origin.path))
    return reader.with_data_files(reader.models(commit)["m.onnx"])


# A model's real bytes, from where Git LFS and DVC keep them.


PATH = "models/big $é {0}.onnx"
NAMED = f"^{re.escape(PATH)}"
BODY = b"the real model" * 1000


@pytest.fixture
def project(tmp_path: Path) -> Checkout:
    return new_repository(tmp_path / "project")


@pytest.fixture
def no_git_lfs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A PATH with git and nothing else."""
    only_git = tmp_path / "bin"
    only_git.mkdir()
    found = next(
        Path(d) / "git" for d in os.environ["PATH"].split(":") if (Path(d) / "git").exists()
    )
    (only_git / "git").symlink_to(found)
    monkeypatch.setenv("PATH", str(only_git))


def content_at_head(project: Checkout) -> bytes:
    repository = GitRepository(project.path)
    return repository.content(version_at_head(repository))


def version_at_head(repository: GitRepository) -> ModelVersion:
    return GitModelReader(repository).models("HEAD")[PATH]


def test_a_file_that_talks_of_pointers_is_not_one(project: Checkout) -> None:
    text = pointer_files.lfs_pointer_to(BODY) + b"more"
    project.commit({PATH: text})
    assert content_at_head(project) == text


def test_lfs_content_comes_from_the_local_store(project: Checkout) -> None:
    project.commit({PATH: pointer_files.lfs_pointer_to(BODY)})
    pointer_files.keep_in_lfs(project, BODY)
    assert content_at_head(project) == BODY


def test_a_worktree_uses_the_lfs_store_of_its_repository(project: Checkout, tmp_path: Path) -> None:
    project.commit({PATH: pointer_files.lfs_pointer_to(BODY)})
    pointer_files.keep_in_lfs(project, BODY)
    project.git("worktree", "add", "-q", "--detach", str(tmp_path / "tree"))
    assert content_at_head(Checkout(tmp_path / "tree")) == BODY


@pytest.mark.usefixtures("no_git_lfs")
def test_an_lfs_pointer_alone_says_what_to_run(project: Checkout) -> None:
    project.commit({PATH: pointer_files.lfs_pointer_to(BODY)})
    with pytest.raises(ModelError) as raised:
        content_at_head(project)
    assert str(raised.value) == (
        f"{PATH} at HEAD: only its Git LFS pointer is here, and git-lfs is not installed: do that "
        f"first. Run: git lfs fetch origin HEAD --include='{PATH}'"
    )


@pytest.mark.usefixtures("no_git_lfs")
def test_a_name_that_git_lfs_takes_for_patterns_is_not_given_to_it(project: Checkout) -> None:
    body = pointer_files.lfs_pointer_to(BODY)
    commit = project.commit({"a,b [1].onnx": body})
    stored = msgspec.structs.replace(
        version(commit, "a,b [1].onnx"), storage="lfs", size_bytes=len(body)
    )
    with pytest.raises(ModelError, match=rf"Run: git lfs fetch origin {commit}$"):
        GitRepository(project.path).content(stored)


def test_git_lfs_is_asked_for_what_is_not_here(
    project: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.commit({PATH: pointer_files.lfs_pointer_to(BODY)})
    (tmp_path / "served").write_bytes(BODY)
    install_git_lfs(tmp_path / "bin", f"cat '{tmp_path / 'served'}'", monkeypatch)
    assert content_at_head(project) == BODY


@pytest.mark.parametrize("script", ["cat", "exit 2"])
def test_what_git_lfs_could_not_get_says_what_to_run(
    project: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    project.commit({PATH: pointer_files.lfs_pointer_to(BODY)})
    install_git_lfs(tmp_path / "bin", script, monkeypatch)
    with pytest.raises(ModelError, match=r"and git-lfs could not fetch it. Run: git lfs fetch"):
        content_at_head(project)


@pytest.mark.parametrize("script", ["sleep 600", "setsid sleep 600 & sleep 600"])
def test_a_git_lfs_that_never_answers_is_stopped(
    project: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    project.commit({PATH: pointer_files.lfs_pointer_to(BODY)})
    install_git_lfs(tmp_path / "bin", script, monkeypatch)
    monkeypatch.setattr(git_process, "_MAX_SECONDS", 1)
    started = time.monotonic()
    with pytest.raises(ModelError, match="only its Git LFS pointer is here"):
        content_at_head(project)
    assert time.monotonic() - started < 60
    left = {child.name() for child in psutil.Process().children(recursive=True)}
    assert not left & {"git", "git-lfs"}


def test_dvc_content_may_be_checked_out_from_a_cache_elsewhere(project: Checkout) -> None:
    project.commit({f"{PATH}.dvc": pointer_files.dvc_file_of(PATH, BODY)})
    (project.path / PATH).write_bytes(BODY)
    assert content_at_head(project) == BODY


def test_a_checked_out_file_of_another_content_is_not_taken(project: Checkout) -> None:
    project.commit({f"{PATH}.dvc": pointer_files.dvc_file_of(PATH, BODY)})
    (project.path / PATH).write_bytes(b"an older model")
    with pytest.raises(ModelError) as raised:
        content_at_head(project)
    assert str(raised.value) == (
        f"{PATH}: the working tree has 14 bytes, where the pointer says {len(BODY)}. "
        f"Run: dvc pull --force '{PATH}.dvc'"
    )


def test_a_checked_out_link_is_not_followed(project: Checkout, tmp_path: Path) -> None:
    project.commit({f"{PATH}.dvc": pointer_files.dvc_file_of(PATH, BODY)})
    (tmp_path / "real").write_bytes(BODY)
    (project.path / PATH).symlink_to(tmp_path / "real")
    with pytest.raises(ModelError, match=r"only its \.dvc file is here"):
        content_at_head(project)


def test_a_pipe_in_the_cache_is_no_file_to_wait_for(project: Checkout) -> None:
    project.commit({f"{PATH}.dvc": pointer_files.dvc_file_of(PATH, BODY)})
    kept = pointer_files.keep_in_dvc(project, BODY)
    kept.unlink()
    os.mkfifo(kept)
    with pytest.raises(ModelError, match=r"only its \.dvc file is here"):
        content_at_head(project)


@pytest.mark.parametrize("other", [BODY[:-1] + b"X", BODY[:-1], BODY + b"more"])
def test_other_bytes_in_the_lfs_store_or_the_dvc_cache_are_an_error(
    project: Checkout, other: bytes
) -> None:
    project.commit({PATH: pointer_files.lfs_pointer_to(BODY)})
    pointer_files.keep_in_lfs(project, BODY).write_bytes(other)
    with pytest.raises(ModelError, match=rf"{NAMED}: the Git LFS store has .* Run: git lfs fetch"):
        content_at_head(project)
    project.commit({PATH: None, f"{PATH}.dvc": pointer_files.dvc_file_of(PATH, BODY)})
    pointer_files.keep_in_dvc(project, BODY).write_bytes(other)
    with pytest.raises(ModelError, match=rf"{NAMED}: the DVC cache has .* Run: dvc pull --force"):
        content_at_head(project)


def test_other_bytes_from_git_lfs_are_an_error(
    project: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.commit({PATH: pointer_files.lfs_pointer_to(BODY)})
    install_git_lfs(tmp_path / "bin", "echo cut short", monkeypatch)
    with pytest.raises(ModelError) as raised:
        content_at_head(project)
    assert str(raised.value) == (
        f"{PATH}: git lfs smudge has 10 bytes, where the pointer says {len(BODY)}. "
        f"Run: git lfs fetch origin HEAD --include='{PATH}'"
    )


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_an_old_dvc_file_may_hash_unix_line_ends(project: Checkout, line_end: bytes) -> None:
    body = line_end.join([b"words"] * 9)
    md5 = pointer_files.md5_of(body.replace(b"\r\n", b"\n"))
    name = Path(PATH).name
    project.commit({f"{PATH}.dvc": f"outs:\n- md5: {md5}\n  path: {name}\n".encode()})
    (project.path / PATH).write_bytes(body)
    assert content_at_head(project) == body


def test_a_newer_dvc_file_may_not(project: Checkout) -> None:
    md5, name = pointer_files.md5_of(b"a\nb"), Path(PATH).name
    text = f"outs:\n- md5: {md5}\n  size: 4\n  hash: md5\n  path: {name}\n"
    project.commit({f"{PATH}.dvc": text.encode()})
    (project.path / PATH).write_bytes(b"a\r\nb")
    with pytest.raises(ModelError, match="has other bytes than the pointer says"):
        content_at_head(project)


def test_a_broken_dvc_file_is_said_to_be_one(project: Checkout) -> None:
    project.commit({f"{PATH}.dvc": b"outs: []"})
    with pytest.raises(ModelError) as raised:
        content_at_head(project)
    assert str(raised.value) == f"{PATH}.dvc: not a DVC file of this name. Run: dvc add '{PATH}'"


def test_data_files_come_from_lfs_and_dvc_too(project: Checkout, tmp_path: Path) -> None:
    files = {
        "models/in-lfs.onnx": pointer_files.lfs_pointer_to(model_with_data("w.bin")),
        "models/w.bin": pointer_files.lfs_pointer_to(b"lfs weights"),
        "models/in-dvc.onnx.dvc": pointer_files.dvc_file_of(
            "in-dvc.onnx", model_with_data("v.bin")
        ),
        "models/v.bin.dvc": pointer_files.dvc_file_of("v.bin", b"dvc weights"),
    }
    project.commit(files)
    for kept in (model_with_data("w.bin"), b"lfs weights"):
        pointer_files.keep_in_lfs(project, kept)
    for kept in (model_with_data("v.bin"), b"dvc weights"):
        pointer_files.keep_in_dvc(project, kept)
    repository = GitRepository(project.path)
    for version in GitModelReader(repository).models("HEAD").values():
        repository.export_model(version, tmp_path / "out")
    assert (tmp_path / "out" / "w.bin").read_bytes() == b"lfs weights"
    assert (tmp_path / "out" / "v.bin").read_bytes() == b"dvc weights"


def install_git_lfs(directory: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A git-lfs that answers in its own way; git finds it by its name on PATH."""
    directory.mkdir()
    program = directory / "git-lfs"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")


# What git itself says of attributes, and what of it changes bytes.

ATTRIBUTES_PATH = "models/d.bin"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("*.bin text eol=crlf", "eol=crlf"),
        ("*.bin eol=crlf", "eol=crlf"),
        ("* text=auto eol=crlf", "text=auto eol=crlf"),
        ("*.bin crlf eol=crlf", "eol=crlf"),
        ("*.bin ident", "ident"),
        ("*.bin working-tree-encoding=UTF-16", "working-tree-encoding=UTF-16"),
        ("*.bin ident eol=crlf", "ident eol=crlf"),
        ("*.bin working-tree-encoding=UTF-8", None),
        ("*.bin working-tree-encoding=utf8 eol=crlf", "eol=crlf"),
        ("*.bin -text eol=crlf", None),
        ("* text=auto", None),
        ("*.bin text", None),
        ("*.bin filter=lfs diff=lfs merge=lfs -text", None),
        ("*.md text eol=crlf", None),
    ],
)
def test_what_a_line_does_to_a_file(line: str, told: str | None) -> None:
    assert (
        conversions({".gitattributes": line.encode()}, [ATTRIBUTES_PATH]).get(ATTRIBUTES_PATH)
        == told
    )


def test_a_link_whose_target_reads_as_attributes_counts(tmp_path: Path) -> None:
    """A checkout takes attributes from the index, where a link is a file with its target."""
    origin = new_repository(tmp_path / "origin")
    (origin.path / ".gitattributes").symlink_to("*.onnx text eol=crlf")
    commit = origin.commit({"m.onnx": b"a\nb\n"})
    copy = clone(origin, tmp_path / "copy")
    assert (copy.path / "m.onnx").read_bytes() == b"a\r\nb\r\n"
    assert GitRepository(origin.path).conversions(commit, ["m.onnx"]) == {"m.onnx": "eol=crlf"}


def test_files_of_attributes_and_of_pipelines_cost_no_process_each(origin: Checkout) -> None:
    names = (".gitattributes", "dvc.lock", "dvc.yaml")
    files = {f"{n}/{name}": f"# {n}\n".encode() for n in range(3) for name in names}
    commit = origin.commit({**files, "a/m.onnx": b"", ".gitattributes": b"* eol=crlf"})
    repository = Counting(origin.path)
    assert repository.conversions(commit, ["a/m.onnx"]) == {"a/m.onnx": "eol=crlf"}
    repository.stage_outputs(commit)
    assert repository.read_alone == 0


@pytest.mark.parametrize(
    "name", ["a b", "m[1]", "a*b", "#x", "!x", 'q"t', 'q" t', "b\\s h", "t\tx"]
)
@pytest.mark.parametrize("directory", ["", "models/"])
def test_the_line_that_is_advised_leaves_that_file_alone(directory: str, name: str) -> None:
    path, other = f"{directory}{name}.onnx", f"{directory}deep/{name}.onnx"
    file, pattern = pattern_of(path)
    lines = {f"{directory}.gitattributes": b"*.onnx eol=crlf", ".gitattributes": b"* eol=crlf"}
    advised = f"\n{pattern} -text -ident !working-tree-encoding".encode()
    assert conversions({**lines, file: lines[file] + advised}, [path, other]).keys() == {other}


def test_patterns_that_git_cannot_match_in_time_are_no_reason_to_take_bytes_as_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Git's matcher goes back for each `*`: 200 letters take it years."""
    monkeypatch.setattr(checkout, "_MATCHING_SECONDS", 1)
    line = b"*q" * 24 + b"z eol=crlf"
    with pytest.raises(RevisionError, match="fewer asterisks"):
        conversions({".gitattributes": line}, ["q" * 200 + ".bin"])


def test_blobs_that_git_was_killed_over_are_not_empty(
    origin: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = origin.commit({".gitattributes": b"* eol=crlf", "a.onnx": b""})
    repository = GitRepository(origin.path)
    killed = tmp_path / "bin" / "git"
    killed.parent.mkdir()
    batch = f'case "$*" in *--batch*) kill -9 $$;; esac; exec {shutil.which("git")} "$@"'
    killed.write_text(f"#!/bin/sh\n{batch}\n")
    killed.chmod(0o755)
    monkeypatch.setenv("PATH", f"{killed.parent}:{os.environ['PATH']}")
    with pytest.raises(RevisionError, match="git cat-file failed, was killed"):
        repository.conversions(commit, ["a.onnx"])


def test_the_nearest_file_counts() -> None:
    files = {".gitattributes": b"* eol=crlf", "models/.gitattributes": b"*.bin -text"}
    assert conversions(files, [ATTRIBUTES_PATH, "other.bin"]) == {"other.bin": "eol=crlf"}


def test_a_checkout_writes_other_bytes_where_we_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = new_repository(tmp_path / "origin")
    contents = {"text.bin": b"a\nb\n", "zero.bin": b"a\n\0b\n", "id.bin": b"$Id$\0a\n"}
    for attribute in ("eol=crlf", "text=auto eol=crlf", "ident", "ident text=auto eol=crlf"):
        origin.commit({".gitattributes": f"*.bin {attribute}".encode(), **contents})
        copy = clone(origin, tmp_path / attribute)
        for name, content in contents.items():
            is_changed = (copy.path / name).read_bytes() != content
            for piece_bytes in (2, 100):
                monkeypatch.setattr(checkout, "_PIECE_BYTES", piece_bytes)
                assert changes_bytes(attribute, BytesIO(content)) == is_changed


@pytest.mark.parametrize(
    "path", ["/etc/.gitattributes", "../.gitattributes", ".GIT/.gitattributes"]
)
def test_a_name_that_leads_out_of_the_tree_is_not_written(path: str) -> None:
    assert not is_safe(path)
    assert is_safe("models/.gitattributes")


@pytest.mark.parametrize(("line", "found"), [(b"* -text", 0), (b"* eol=crlf", 1)])
def test_attributes_above_the_model_are_a_change_where_they_convert_it(
    tmp_path: Path, line: bytes, found: int
) -> None:
    project = new_repository(tmp_path / "project")
    base = project.commit({"models/m.onnx": matmul_model().SerializeToString()})
    revisions = Revisions(base=base, head=project.commit({".gitattributes": line}))
    config = Config(models=(ModelConfig(path="**/*.onnx"),))
    changes = detect(GitModelReader(GitRepository(project.path)), revisions, config, config)
    assert len(changes.models) == found


def test_a_revision_of_more_files_than_fit_into_memory_is_refused(
    origin: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few trees, each ten times in the next, name billions of files."""
    monkeypatch.setattr("tunegate.system.git.process._MAX_OUTPUT_BYTES", 1000)
    origin.commit({f"{i}.txt": b"" for i in range(30)})
    with pytest.raises(RevisionError, match=r"git \S+ prints over .* Compare commits with fewer"):
        GitRepository(origin.path).files("HEAD")
