"""A model's real bytes, from where Git LFS and DVC keep them."""

import os
import re
import time
from pathlib import Path

import psutil
import pytest

from tests.support.git_repository import Checkout, clone, new_repository
from tests.support.models import pointer_files
from tests.support.models.external_data import model_with_data
from tests.support.small_onnx import matmul_model
from tunegate.artifacts.changes import ModelVersion, Revisions
from tunegate.config import Config, ModelConfig
from tunegate.errors import ModelError
from tunegate.models.reader import GitModelReader
from tunegate.review.detect import detect
from tunegate.system.git import process as git_process
from tunegate.system.git.checkout import changes_bytes, conversions, is_safe
from tunegate.system.git.repository import GitRepository

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
        f"{PATH} at HEAD: only its Git LFS pointer is here, and git-lfs is not installed. "
        f"Run: git lfs fetch origin HEAD --include='{PATH}'"
    )


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


def test_a_git_lfs_that_never_answers_is_stopped(
    project: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.commit({PATH: pointer_files.lfs_pointer_to(BODY)})
    install_git_lfs(tmp_path / "bin", "sleep 600", monkeypatch)
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
def test_other_bytes_in_the_lfs_store_are_an_error(project: Checkout, other: bytes) -> None:
    project.commit({PATH: pointer_files.lfs_pointer_to(BODY)})
    pointer_files.keep_in_lfs(project, BODY).write_bytes(other)
    with pytest.raises(ModelError, match=rf"{NAMED}: the Git LFS store has .* Run: git lfs fetch"):
        content_at_head(project)


@pytest.mark.parametrize("other", [BODY[:-1] + b"X", BODY[:-1], BODY + b"more"])
def test_other_bytes_in_the_dvc_cache_are_an_error(project: Checkout, other: bytes) -> None:
    project.commit({f"{PATH}.dvc": pointer_files.dvc_file_of(PATH, BODY)})
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
def test_an_old_dvc_file_may_have_the_md5_of_unix_line_ends(
    project: Checkout, line_end: bytes
) -> None:
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


def test_the_nearest_file_counts() -> None:
    files = {".gitattributes": b"* eol=crlf", "models/.gitattributes": b"*.bin -text"}
    assert conversions(files, [ATTRIBUTES_PATH, "other.bin"]) == {"other.bin": "eol=crlf"}


def test_a_checkout_writes_other_bytes_where_we_say_so(tmp_path: Path) -> None:
    origin = new_repository(tmp_path / "origin")
    contents = {"text.bin": b"a\nb\n", "zero.bin": b"a\n\0b\n"}
    for attribute in ("eol=crlf", "text=auto eol=crlf"):
        origin.commit({".gitattributes": f"*.bin {attribute}".encode(), **contents})
        copy = clone(origin, tmp_path / attribute)
        for name, content in contents.items():
            is_changed = (copy.path / name).read_bytes() != content
            assert changes_bytes(attribute, content) == is_changed


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
