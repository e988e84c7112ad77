"""Git, really started, in repositories whose settings would start something else."""

import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest

from tests.support.git_repository import Checkout, clone, new_repository
from tunegate.errors import EnvironmentUnfitError, RevisionError
from tunegate.system.git.fetch import ensure_here, fetch_branch
from tunegate.system.git.process import GitProcess
from tunegate.system.git.repository import GitRepository


@pytest.fixture
def project(tmp_path: Path) -> Checkout:
    checkout = new_repository(tmp_path / "project")
    checkout.commit({"a.onnx": b"first"})
    checkout.commit({"a.onnx": b"second", ".gitattributes": b"* filter=planted diff=planted\n"})
    return checkout


@pytest.fixture
def marking(tmp_path: Path) -> Path:
    """A program that leaves `ran` beside itself, whatever it is asked."""
    program = tmp_path / "marking"
    program.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{tmp_path / 'ran'}'\nexit 1\n")
    program.chmod(0o755)
    return program


def ran(marking: Path) -> str:
    log = marking.with_name("ran")
    return log.read_text() if log.exists() else ""


def shaped_like_a_repository(origin: Checkout, at: Path, marking: Path) -> None:
    """Writes what a pull request can commit: every file of a bare repository, with its settings."""
    clone(origin, at, "--bare")
    settings = {
        "remote.origin.url": f"ext::{marking} %S",
        "protocol.ext.allow": "always",
        "core.fsmonitor": str(marking),
        "core.bare": "false",
        "core.worktree": str(at.parent),
    }
    for key, value in settings.items():
        origin.git("-C", str(at), "config", key, value)


@pytest.mark.parametrize("inside", ["evil", "evil/refs", "evil/refs/heads"])
def test_a_directory_with_the_shape_of_a_repository_is_a_directory(
    project: Checkout, marking: Path, inside: str
) -> None:
    shaped_like_a_repository(project, project.path / "evil", marking)
    repository = GitRepository(project.path / inside)
    assert repository.root == project.path
    assert not ensure_here(GitProcess(project.path / inside), "f" * 40)
    repository.state()
    assert ran(marking) == ""


def test_outside_of_a_working_tree_such_a_directory_is_refused(
    project: Checkout, marking: Path, tmp_path: Path
) -> None:
    shaped_like_a_repository(project, tmp_path / "evil", marking)
    with pytest.raises(RevisionError, match="not a git repository with a working tree"):
        GitProcess(tmp_path / "evil")
    assert ran(marking) == ""


def test_a_git_file_that_names_content_of_the_checkout_is_refused(
    project: Checkout, marking: Path, tmp_path: Path
) -> None:
    place = tmp_path / "extracted"
    place.mkdir()
    shaped_like_a_repository(project, place / "evil", marking)
    project.git("-C", str(place / "evil"), "config", "core.worktree", str(place))
    (place / ".git").write_text("gitdir: evil\n")
    with pytest.raises(RevisionError, match="not a git repository with a working tree"):
        GitProcess(place)
    assert ran(marking) == ""


def test_a_git_directory_that_is_none_does_not_lead_to_the_one_around_it(project: Checkout) -> None:
    (project.path / "inside" / ".git").mkdir(parents=True)
    with pytest.raises(RevisionError, match="not a git repository with a working tree"):
        GitProcess(project.path / "inside")


def test_a_submodule_is_not_looked_into(project: Checkout, marking: Path, tmp_path: Path) -> None:
    """Git would start another of its processes there, and its settings
    have filters of their own."""
    other = new_repository(tmp_path / "other")
    other.commit({"a": b"a", ".gitattributes": b"* filter=planted\n"})
    allow = ("-c", "protocol.file.allow=always")
    project.git(*allow, "submodule", "-q", "add", str(other.path), "sub")
    project.commit({})
    project.git("-C", "sub", "config", "filter.planted.clean", str(marking))
    (project.path / "sub" / "a").write_bytes(b"b")
    GitRepository(project.path).state()
    assert ran(marking) == ""


@pytest.mark.parametrize("address", ["ext::{program} %S", "fd::0/x"])
@pytest.mark.parametrize("allowed", [None, "ext:fd:file"])
def test_an_address_that_is_a_command_is_not_fetched_from(
    project: Checkout,
    marking: Path,
    monkeypatch: pytest.MonkeyPatch,
    address: str,
    allowed: str | None,
) -> None:
    if allowed is not None:
        monkeypatch.setenv("GIT_ALLOW_PROTOCOL", allowed)
    project.git("remote", "add", "origin", address.format(program=marking))
    for kind in ("ext", "fd"):
        project.git("config", f"protocol.{kind}.allow", "always")
    assert not ensure_here(GitProcess(project.path), "f" * 40)
    assert ran(marking) == ""


def test_a_helper_for_another_kind_of_address_is_not_started(
    project: Checkout, marking: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marking.with_name("git-remote-planted").symlink_to(marking)
    monkeypatch.setenv("PATH", f"{marking.parent}:{os.environ['PATH']}")
    project.git("remote", "add", "origin", "planted::anything")
    assert not ensure_here(GitProcess(project.path), "f" * 40)
    assert ran(marking) == ""


def test_a_narrower_choice_of_protocols_holds(
    project: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = clone(project, tmp_path / "here", "--depth=1")
    missing = project.git("rev-parse", "HEAD~1")
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "https")
    assert not ensure_here(GitProcess(here.path), missing)
    monkeypatch.delenv("GIT_ALLOW_PROTOCOL")
    assert ensure_here(GitProcess(here.path), missing)


def test_replaced_objects_are_read_as_they_were(project: Checkout) -> None:
    parent = project.git("rev-parse", "HEAD~1")
    project.git("replace", "HEAD:a.onnx", "HEAD~1:a.onnx")
    project.git("replace", "HEAD", "HEAD~1")
    repository = GitRepository(project.path)
    assert repository.read("HEAD", "a.onnx") == b"second"
    assert repository.revisions(None, None).base == parent


def test_no_setting_starts_a_program(project: Checkout, marking: Path, tmp_path: Path) -> None:
    """The settings are the repository's own, or the user's: the checkout may say what they run on,
    by attributes, or because they name a file of the checkout."""
    here = clone(project, tmp_path / "here", "--depth=1")
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for hook in ("reference-transaction", "post-index-change", "fsmonitor-watchman", "pre-auto-gc"):
        (hooks / hook).symlink_to(marking)
    settings = {
        "core.hooksPath": str(hooks),
        "core.fsmonitor": str(marking),
        "core.pager": str(marking),
        "core.editor": str(marking),
        "core.alternateRefsCommand": str(marking),
        "diff.external": str(marking),
        "diff.planted.textconv": str(marking),
        "diff.planted.command": str(marking),
        "filter.planted.clean": str(marking),
        "filter.planted.process": str(marking),
        "filter.planted.required": "true",
        "log.showSignature": "true",
        "gpg.program": str(marking),
        "safe.bareRepository": "all",
    }
    (here.path / "a.onnx").write_bytes(b"edited")
    for key, value in settings.items():
        here.git("config", key, value)
    repository = GitRepository(here.path)
    assert "1 uncommitted" in repository.state()
    assert repository.read("HEAD", "a.onnx") == b"second"
    assert ensure_here(GitProcess(here.path), project.git("rev-parse", "HEAD~1"))
    project.commit({"later": b"content"})
    assert fetch_branch(GitProcess(here.path), "main") == "refs/remotes/origin/main"
    assert repository.trailers("HEAD~1", "HEAD", "Waiver") == ()
    repository.before_last_change("HEAD", "a.onnx")
    assert GitProcess(here.path).text("config", "safe.bareRepository") == "explicit"
    assert ran(marking) == ""


def test_a_signature_is_not_looked_at(project: Checkout, marking: Path, tmp_path: Path) -> None:
    """The program that looks would be chosen by the settings."""
    lines = project.git("cat-file", "commit", "HEAD").partition("\n\n")
    signed = (
        f"{lines[0]}\ngpgsig -----BEGIN PGP SIGNATURE-----\n -----END PGP SIGNATURE-----\n\nx\n"
    )
    (tmp_path / "signed").write_text(signed)
    commit = project.git("hash-object", "-t", "commit", "-w", str(tmp_path / "signed"))
    for key, value in {"log.showSignature": "true", "gpg.program": str(marking)}.items():
        project.git("config", key, value)
    assert GitRepository(project.path).trailers("HEAD~1", commit, "Waiver") == ()
    assert ran(marking) == ""


def test_what_lends_objects_is_not_asked_by_a_command(
    project: Checkout, marking: Path, tmp_path: Path
) -> None:
    lender = new_repository(tmp_path / "lender")
    lender.commit({"other": b"content"})
    here = clone(project, tmp_path / "here", "--depth=1")
    objects = lender.path / ".git" / "objects"
    (here.path / ".git" / "objects" / "info" / "alternates").write_text(f"{objects}\n")
    here.git("config", "core.alternateRefsCommand", str(marking))
    assert ensure_here(GitProcess(here.path), project.git("rev-parse", "HEAD~1"))
    assert ran(marking) == ""


def test_what_a_fetch_needs_is_the_repositorys_own(project: Checkout, marking: Path) -> None:
    """The checkout step wrote it, as actions/checkout does for a key; nobody can commit it."""
    project.git("remote", "add", "origin", "ssh://git@host.invalid/r.git")
    project.git("config", "core.sshCommand", str(marking))
    assert not ensure_here(GitProcess(project.path), "f" * 40)
    assert "git-upload-pack" in ran(marking)


@pytest.mark.parametrize("way", ["include", "link", "home"])
def test_a_fetch_is_not_set_up_by_a_file_of_the_checkout(
    project: Checkout, marking: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Teams share settings by including a file that is tracked; a job may
    have its home in the checkout."""
    project.git("remote", "add", "origin", "ssh://git@host.invalid/r.git")
    project.commit({".gitconfig": f"[core]\nsshCommand = {marking}\n".encode()})
    if way == "home":
        monkeypatch.setenv("HOME", str(project.path))
    elif way == "include":
        project.git("config", "include.path", "../.gitconfig")
    else:
        (project.path / ".git" / "more").symlink_to(project.path / ".gitconfig")
        project.git("config", "include.path", "more")
    with pytest.raises(RevisionError, match=r"git takes core\.sshcommand from .*\. Set it in"):
        ensure_here(GitProcess(project.path), "f" * 40)
    assert ran(marking) == ""


def test_other_settings_may_be_shared_and_a_job_may_write_its_own(
    project: Checkout, marking: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.commit({"shared": b"[alias]\nst = status\n[diff]\nexternal = ./no\n"})
    project.git("config", "include.path", "../shared")
    (project.path / ".gitconfig").write_text("[credential]\nhelper = store\n")
    monkeypatch.setenv("HOME", str(project.path))
    assert GitRepository(project.path).read("HEAD", "a.onnx") == b"second"


def test_a_program_beside_the_models_is_not_git(
    project: Checkout, marking: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.path / "git").symlink_to(marking)
    monkeypatch.chdir(project.path)
    monkeypatch.setenv("PATH", f":.:{os.environ['PATH']}")
    assert GitRepository(project.path).read("HEAD", "a.onnx") == b"second"
    assert ran(marking) == ""


def test_a_machine_without_git_says_what_is_missing(
    project: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentUnfitError, match="git: not found on the PATH"):
        GitProcess(project.path)
    (tmp_path / "git").write_text("#!/bin/sh\nkill -9 $$\n")
    (tmp_path / "git").chmod(0o755)
    with pytest.raises(RevisionError, match=r"git cannot read it \(it ended with -9\)"):
        GitProcess(project.path)


def test_an_interrupt_ends_git_and_what_it_has_started(project: Checkout, tmp_path: Path) -> None:
    sleeper = tmp_path / "sleeper"
    sleeper.write_text(f"#!/bin/sh\nkill -INT {os.getpid()}\nsleep 600\n")
    sleeper.chmod(0o755)
    project.git("remote", "add", "origin", "ssh://git@host.invalid/r.git")
    project.git("config", "core.sshCommand", str(sleeper))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # some start us with it ignored
    with pytest.raises(KeyboardInterrupt):
        ensure_here(GitProcess(project.path), "f" * 40)
    left = {child.name() for child in psutil.Process().children(recursive=True)}
    assert not left & {"git", "sleep", "sleeper", "ssh"}


class InterruptedAlarm(threading.Timer):
    def start(self) -> None:
        super().start()
        raise KeyboardInterrupt


class InterruptedStart(subprocess.Popen[bytes]):
    began: ClassVar[list[subprocess.Popen[bytes]]] = []

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.began.append(self)
        with self:  # closes the pipes, as an interrupt inside of it does
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    "place", [(threading, "Timer", InterruptedAlarm), (subprocess, "Popen", InterruptedStart)]
)
def test_an_interrupt_while_git_starts_leaves_neither_git_nor_its_time_limit(
    project: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: tuple[Any, str, Any]
) -> None:
    """A time limit that stays keeps the command from ending, and then kills whoever has git's
    number by then."""
    git = GitProcess(project.path)
    (tmp_path / "git").write_text("#!/bin/sh\nsleep 600\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(*place)
    with pytest.raises(KeyboardInterrupt):
        git.text("version")
    assert not {each.name() for each in psutil.Process().children(recursive=True)} & {"git"}
    for process in InterruptedStart.began:
        process.wait()
    for alarm in (each for each in threading.enumerate() if isinstance(each, InterruptedAlarm)):
        alarm.join(5)
        assert not alarm.is_alive()
