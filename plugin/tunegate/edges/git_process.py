"""Git as a child process: the only door to it. The repository's own settings say where things are and who
may read them; none of them starts a program here, but what a fetch needs, or changes what is read."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import IO, Protocol, cast

from tunegate.errors import EnvironmentUnfitError, RevisionError
from tunegate.isolation import absolute_only

_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "LC_ALL": "C",
}
_PROTOCOLS = ("file", "git", "http", "https", "ssh")
_NO_PROTOCOLS = ("ext", "fd")
"""Their address is a command, or a number of a file that is open."""
_OF_ANOTHER_REPOSITORY = (
    *("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_PREFIX"),
    *("GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
    *("GIT_GRAFT_FILE", "GIT_SHALLOW_FILE", "GIT_REPLACE_REF_BASE", "GIT_NAMESPACE"),
    *("GIT_EXTERNAL_DIFF", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_CONFIG"),
)
"""Inside a hook they name that one."""
_SETTINGS = {
    "safe.bareRepository": "explicit",
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.attributesFile": os.devnull,
    "core.alternateRefsCommand": "true",
    "core.quotePath": "false",
    "log.showSignature": "false",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    # A fetch may start `gc --auto`, which lives on behind us and repacks what we read.
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_PIECE_BYTES = 2**20
_LONGEST_SECONDS = 900
"""A remote that does not answer must not hold a job for hours; a download may take minutes."""


class Writer(Protocol):
    """What takes the output of git: a file, or what looks at it on its way."""

    def write(self, piece: bytes, /) -> int: ...


class GitProcess:
    """Runs git in one repository, whatever GIT_DIR says: inside a hook it names another one."""

    def __init__(self, path: Path) -> None:
        """Raises RevisionError where there is no working tree, or git refuses to read it."""
        self.root = _working_tree(path)
        self.git_dir = self._checked_git_dir(path)

    def text(self, *arguments: str, settings: Mapping[str, str] | None = None) -> str | None:
        """Standard output without its last newline; None when git says no."""
        body = self.output(*arguments, settings=settings)
        return None if body is None else body.decode("utf-8", "surrogateescape").rstrip("\n")

    def output(
        self,
        *arguments: str,
        standard_input: bytes = b"",
        settings: Mapping[str, str] | None = None,
    ) -> bytes | None:
        """Of git with these settings beside ours; None when it says no, or does not end."""
        content = BytesIO()
        is_said = self.copy(
            *arguments, into=content, standard_input=standard_input, settings=settings
        )
        return content.getvalue() if is_said else None

    def copy(
        self,
        *arguments: str,
        into: Writer,
        standard_input: bytes = b"",
        settings: Mapping[str, str] | None = None,
    ) -> bool:
        """Standard output, piece by piece; whether git said yes."""
        code, _ = _run(self.root, arguments, into, standard_input, settings or {})
        return code == 0

    def without_filters(self) -> dict[str, str]:
        """Settings that switch off what is configured to run on files of the working tree: which of them
        it runs on, the attributes in the checkout say."""
        listed = self.text("config", "-z", "--name-only", "--get-regexp", r"^filter\.") or ""
        names = {name.rpartition(".")[0] for name in listed.split("\0") if name}
        off = {"clean": "", "smudge": "", "process": "", "required": "false"}
        return {f"{name}.{key}": value for name in sorted(names) for key, value in off.items()}

    def _checked_git_dir(self, path: Path) -> Path:
        """Git finds it from the working tree, so that it looks at who owns it."""
        said = BytesIO()
        code, errors = _run(self.root, ("rev-parse", "--absolute-git-dir"), said)
        if b"safe.directory" in errors:
            message = (
                f"{self.root}: belongs to another user, so git does not read it. "
                f"Run: git config --global --add safe.directory {self.root}"
            )
            raise RevisionError(message)
        git_dir = Path(os.fsdecode(said.getvalue()).removesuffix("\n"))
        if code != 0 or _is_content(git_dir, self.root):
            raise _no_repository(path)
        return git_dir


def new_repository(root: Path) -> GitProcess:
    """An empty one, on branch `main`."""
    root.mkdir(parents=True)
    _run(root, ("init", "-q", "--initial-branch=main"), BytesIO())
    return GitProcess(root)


def _working_tree(path: Path) -> Path:
    """Found by its `.git`, which nobody can commit. Git itself, asked from inside, takes a directory with
    the shape of a bare repository for one, and the settings that were committed with it for its own."""
    place = path.resolve()
    for each in (place, *place.parents) if place.is_dir() else ():
        if os.path.lexists(each / ".git"):
            return each
    raise _no_repository(path)


def _is_content(git_dir: Path, root: Path) -> bool:
    """Whether this is a directory of the checkout: a `.git` file may name any."""
    return git_dir.is_relative_to(root) and ".git" not in git_dir.relative_to(root).parts


def _no_repository(path: Path) -> RevisionError:
    message = (
        f"{path}: not a git repository with a working tree. Run inside one, or name it with "
        f"--repository."
    )
    return RevisionError(message)


def _run(
    root: Path,
    arguments: tuple[str, ...],
    into: Writer,
    standard_input: bytes = b"",
    settings: Mapping[str, str] | None = None,
) -> tuple[int, bytes]:
    """The exit code, and what was said on standard error. Where git is stopped, by its limit, an
    interrupt or the writer, so is what it has started."""
    pairs = {**_SETTINGS, **(settings or {})}.items()
    words = (word for key, value in pairs for word in ("-c", f"{key}={value}"))
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as errors:
        stdin.write(standard_input)
        stdin.seek(0)
        with _begun(["git", *words, *arguments], root, stdin, errors) as process:
            alarm = threading.Timer(_LONGEST_SECONDS, _end, [process])
            alarm.start()
            try:
                while piece := cast("BufferedReader", process.stdout).read1(_PIECE_BYTES):
                    into.write(piece)
                process.wait()
            except BaseException:
                _end(process)
                process.wait()
                raise
            finally:
                alarm.cancel()
        errors.seek(0)
        return process.returncode, errors.read()


def _begun(
    line: list[str], root: Path, stdin: IO[bytes], errors: IO[bytes]
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            line,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=_environment(root),
            cwd=root,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        message = "git: not found on the PATH. Install git."
        raise EnvironmentUnfitError(message) from error


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _environment(root: Path) -> dict[str, str]:
    kept = absolute_only(dict(os.environ))
    for name in _OF_ANOTHER_REPOSITORY:
        kept.pop(name, None)
    wanted = kept.get("GIT_ALLOW_PROTOCOL", ":".join(_PROTOCOLS)).split(":")
    return {
        **kept,
        **_ENVIRONMENT,
        "GIT_CEILING_DIRECTORIES": str(root.parent),
        "GIT_ALLOW_PROTOCOL": ":".join(each for each in wanted if each not in _NO_PROTOCOLS),
    }
