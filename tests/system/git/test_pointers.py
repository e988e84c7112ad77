"""Pointers, and files that only look like one."""

import hashlib
import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.git_repository import Checkout, clone, new_repository
from tests.support.models.pointer_files import dvc_file_of, lfs_pointer_to, md5_of
from tests.support.programs import require
from tunegate.errors import ModelError
from tunegate.models.reader import GitModelReader
from tunegate.system.git.content import (
    ContentPointer,
    dvc_pointer,
    is_odd_lfs_pointer,
    lfs_download,
    lfs_pointer,
)
from tunegate.system.git.process import GitProcess
from tunegate.system.git.repository import GitRepository


@given(st.binary())
def test_a_pointer_says_what_it_stands_for(content: bytes) -> None:
    expected = ContentPointer(hashlib.sha256(content).hexdigest(), len(content), "sha256")
    assert lfs_pointer(lfs_pointer_to(content)) == expected
    told = dvc_pointer(dvc_file_of("models/m.onnx", content), "models/m.onnx")
    assert told == ContentPointer(md5_of(content), len(content), "md5")


@given(st.binary(max_size=2000))
def test_any_other_content_is_no_pointer(content: bytes) -> None:
    assert lfs_pointer(content) is None
    with pytest.raises(ModelError, match=r"^m.onnx.dvc: not a DVC file of this name"):
        dvc_pointer(content, "m.onnx")


@pytest.mark.parametrize("line", [b"anything", b"oid sha256:" + b"0" * 64, b""])
def test_a_pointer_has_no_lines_of_another_kind(line: bytes) -> None:
    version, *rest = lfs_pointer_to(b"model").splitlines()
    assert lfs_pointer(b"\n".join([version, line, *rest, b""])) is None


@pytest.mark.parametrize(
    "written",
    [
        lambda pointer: pointer.rstrip(b"\n"),
        lambda pointer: pointer.replace(b"\n", b"\r\n"),
        lambda pointer: b"\n" + pointer,
        lambda pointer: pointer.replace(b"oid", b"ext-0-zip sha256:%s\noid" % (b"0" * 64)),
        lambda pointer: pointer.replace(
            b"https://git-lfs.github.com", b"https://hawser.github.com"
        ),
    ],
)
def test_a_pointer_to_git_lfs_and_not_to_us_is_odd(written: Callable[[bytes], bytes]) -> None:
    pointer = lfs_pointer_to(b"model")
    assert lfs_pointer(written(pointer)) is None
    assert is_odd_lfs_pointer(written(pointer))
    assert not is_odd_lfs_pointer(pointer)


@pytest.mark.parametrize("wdir", [".", "./"])
def test_a_dvc_file_may_say_that_it_is_of_its_own_directory(wdir: str) -> None:
    text = f"wdir: {wdir}\n".encode() + dvc_file_of("m.onnx", b"mine")
    assert dvc_pointer(text, "d/m.onnx").digest == md5_of(b"mine")


ALIASES = "".join(f"v{n}: &v{n} [{', '.join([f'*v{n - 1}'] * 9)}]\n" for n in range(1, 12))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("outs: []", "not a DVC file of this name"),
        ("outs: none", "not a DVC file of this name"),
        *(
            (
                f"wdir: {wdir}\nouts:\n- {{md5: {md5_of(b'x')}, path: m.onnx}}",
                "its `wdir` leads to a file elsewhere",
            )
            for wdir in ("../other", "..", "sub", "/tmp", "sub/..", "[.]", "''", "null")
        ),
        ("outs:\n- path: m.onnx\n", "names no md5 of the file"),
        ("outs:\n- {path: other.onnx}", "not a DVC file of this name"),
        ("outs: [{path: m.onnx}, {path: ./m.onnx}]", "not a DVC file of this name"),
        (
            "outs:\n- {md5: 0123456789abcdef0123456789abcdef.dir, path: m.onnx}",
            "of a directory, which is not read",
        ),
        ("outs:\n- {md5: ../../../etc/passwd, path: m.onnx}", "names no md5 of the file"),
        (
            f"outs:\n- md5: {md5_of(b'x')}\n  size: {'1' * 5000}\n  hash: md5\n  path: m.onnx\n",
            "not a DVC file of this name",
        ),
        (
            "outs:\n- {md5: 0123456789abcdef0123456789abcdef, path: m.onnx, size: many}",
            "names no md5 of the file",
        ),
        (
            "outs:\n- {md5: 0123456789abcdef0123456789abcdef, path: m.onnx, hash: crc}",
            "names no md5 of the file",
        ),
        ("{", "not a DVC file of this name"),
        ("[]", "not a DVC file of this name"),
        ("[" * 5000, "not a DVC file of this name"),
        ("!!python/object/apply:os.system [true]", "not a DVC file of this name"),
        ("\u2028: \x07", "not a DVC file of this name"),
        (f"v0: &v0 [x]\n{ALIASES}outs: *v11", "not a DVC file of this name"),
        (
            f"outs:\n- {{md5: {md5_of(b'x')}, path: m.onnx}}\n{'#' * 300_000}",
            "not a DVC file of this name",
        ),
    ],
)
def test_what_dvc_would_not_write_for_one_file_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ModelError) as raised:
        dvc_pointer(text.encode(), "m.onnx")
    assert str(raised.value) == f"m.onnx.dvc: {problem}. Run: dvc add m.onnx"


# Which server git-lfs is sent to, by a git-lfs that writes down what git's settings say, and what
# a real one fetches.

SCRIPT = """\
#!/bin/sh
git config --get lfs.url > '{asked}' || echo 'the usual one' > '{asked}'
echo content
"""
THEIRS = b"[lfs]\n\turl = https://elsewhere.invalid/\n"


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "git-lfs"
    program.write_text(SCRIPT.format(asked=tmp_path / "asked"))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return tmp_path / "asked"


@pytest.fixture
def project(tmp_path: Path) -> Checkout:
    checkout = new_repository(tmp_path / "project")
    checkout.commit({"m.onnx": b"pointer"})
    return checkout


def downloaded(project: Checkout) -> bytes:
    answer = BytesIO()
    problem = lfs_download(GitProcess(project.path), b"pointer", "m.onnx", into=answer)
    return b"" if problem else answer.getvalue()


@pytest.mark.parametrize("place", ["working tree", "index", "head"])
def test_a_server_of_the_checkout_is_not_asked(project: Checkout, asked: Path, place: str) -> None:
    if place == "working tree":
        (project.path / ".lfsconfig").write_bytes(THEIRS)
    elif place == "index":
        (project.path / ".lfsconfig").write_bytes(THEIRS)
        project.git("add", ".lfsconfig")
        (project.path / ".lfsconfig").unlink()
    else:
        project.commit({".lfsconfig": THEIRS})
        project.git("rm", "-q", ".lfsconfig")
    assert downloaded(project) == b""
    assert not asked.exists()


@pytest.mark.parametrize(
    ("settings", "is_harmless"),
    [
        ("[lfs]\n\tfetchexclude = *\n", True),
        ("[lfs]\n\tlocksverify = false\n", True),
        ('[lfs "https://ours.invalid/"]\n\tlocksverify = true\n', True),
        ("", True),
        ('[remote "origin"]\n\tlfsurl = https://elsewhere.invalid/\n', False),
        ('[lfs "customtransfer.x"]\n\tpath = ./program\n', False),
        ("[lfs]\n\tstandalonetransferagent = x\n", False),
        ("[include]\n\tpath = other\n", False),
        ("[lfs\nno setting", False),
    ],
)
def test_settings_of_the_checkout_that_may_name_a_server_end_the_download(
    project: Checkout, asked: Path, settings: str, *, is_harmless: bool
) -> None:
    project.commit({".lfsconfig": settings.encode()})
    assert downloaded(project) == (b"content\n" if is_harmless else b"")
    assert (asked.exists() and asked.read_text()) == (is_harmless and "the usual one\n")


def test_a_server_that_the_job_names_is_asked_whatever_the_checkout_says(
    project: Checkout, asked: Path
) -> None:
    project.commit({".lfsconfig": THEIRS})
    project.git("config", "lfs.url", "https://ours.invalid/")
    assert downloaded(project) == b"content\n"
    assert asked.read_text() == "https://ours.invalid/\n"


# A real git-lfs, where one is installed.

BASE, HEAD = b"the base" * 1000, b"the head, which is longer" * 1000


@pytest.fixture
def of_lfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """A repository whose model is stored by Git LFS, with a base and a head, on a server without a
    working tree."""
    require("git-lfs")
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    server = new_repository(tmp_path / "server")
    server.git("config", "receive.denyCurrentBranch", "ignore")
    made = clone(server, tmp_path / "made")
    made.git("lfs", "install", "--local")
    made.commit({".gitattributes": b"*.onnx filter=lfs diff=lfs merge=lfs -text\n"})
    made.commit({"m.onnx": BASE}, "base")
    made.commit({"m.onnx": HEAD}, "head")
    made.git("push", "-q", "origin", "main")
    return server


def had(checkout: Checkout, revision: str) -> bytes:
    repository = GitRepository(checkout.path)
    commit = repository.commit_of(revision, "--base") or ""
    return repository.content(GitModelReader(repository).models(commit)["m.onnx"])


@pytest.mark.parametrize("settings", ["", "[lfs]\n\tfetchexclude = *\n"])
def test_what_a_checkout_was_spared_is_fetched_for_base_and_head(
    of_lfs: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str
) -> None:
    monkeypatch.setenv("GIT_LFS_SKIP_SMUDGE", "1")
    job = clone(of_lfs, tmp_path / "job", "--depth=1")
    (job.path / ".lfsconfig").write_text(settings)
    assert (had(job, "HEAD"), had(job, "HEAD~1")) == (HEAD, BASE)


def test_the_messages_command_fetches_what_the_base_lacks(of_lfs: Checkout, tmp_path: Path) -> None:
    job = clone(of_lfs, tmp_path / "job")
    job.git("lfs", "install", "--local")
    job.git("lfs", "pull")
    of_lfs.path.rename(tmp_path / "out of reach")
    assert had(job, "HEAD") == HEAD
    with pytest.raises(ModelError, match="only its Git LFS pointer is here") as raised:
        had(job, "HEAD~1")
    base = job.git("rev-parse", "HEAD~1")
    said, _, command = str(raised.value).partition("Run: ")
    assert said.startswith(f"m.onnx at {base[:12]}: ")
    assert command == f"git lfs fetch origin {base} --include=m.onnx"
    (tmp_path / "out of reach").rename(of_lfs.path)
    job.git("lfs", "fetch", "origin", base, "--include=m.onnx")
    of_lfs.path.rename(tmp_path / "out of reach")
    assert had(job, "HEAD~1") == BASE


def test_a_clone_that_nobody_has_changed_has_nothing_that_is_not_committed(
    of_lfs: Checkout, tmp_path: Path
) -> None:
    job = clone(of_lfs, tmp_path / "job")
    job.git("lfs", "install", "--local")
    job.git("lfs", "pull")
    os.utime(job.path / "m.onnx", (1, 1))  # git looks into what its index does not know
    repository = GitRepository(job.path)
    assert repository.uncommitted_paths() == ()
    (job.path / "m.onnx").write_bytes(HEAD.replace(b"h", b"H"))
    assert repository.uncommitted_paths() == ("m.onnx",)
    (job.path / "m.onnx").write_bytes(HEAD)
    (job.path / "m.onnx").rename(job.path / "moved")
    (job.path / "m.onnx").symlink_to("moved")
    assert "m.onnx" in repository.uncommitted_paths()
