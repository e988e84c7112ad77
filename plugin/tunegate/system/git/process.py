"""Git as a child process: the only place that runs it."""

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from functools import cached_property
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import IO, Any, Protocol, cast

from tunegate.errors import EnvironmentUnfitError, RevisionError
from tunegate.isolation import absolute_only
from tunegate.regular_files import working_tree
from tunegate.system.processes import interpreter

_PIECE_BYTES = 2**20
_MAX_SECONDS = 900
"""An unresponsive remote must not hold a job for hours; a download may take minutes."""


_MAX_OUTPUT_BYTES = 256 * 2**20
"""About two million files of a revision. A few trees can name billions."""


class Writer(Protocol):
    """A writer of git's output: a file, or a filter before one."""

    def write(self, piece: bytes, /) -> int: ...


class Bounded(BytesIO):
    """Memory for at most `most_bytes`, which stops git with this error once it gives more."""

    def __init__(self, most_bytes: int, error: Exception) -> None:
        super().__init__()
        self._most_bytes, self._error = most_bytes, error

    def write(self, piece: Any, /) -> int:
        if self.tell() + len(piece) > self._most_bytes:
            raise self._error
        return super().write(piece)


class GitProcess:
    """Runs git in one repository, whatever GIT_DIR says: inside a hook it names another one."""

    def __init__(self, path: Path) -> None:
        """Raises RevisionError if there is no working tree, or git refuses to read it."""
        self.root = _working_tree(path)
        self.is_remote_silent = False
        """True once the remote did not give a branch that it was asked for: the one here may be
        old."""
        self.git_dir = self._checked_git_dir(path)
        self._check_settings()

    @cached_property
    def common_dir(self) -> Path:
        """The directory with the objects: a worktree's are in the repository it belongs to."""
        directory = self.text("rev-parse", "--git-common-dir")
        return (self.root / directory).resolve() if directory else self.git_dir

    @cached_property
    def remote(self) -> str:
        """The remote that is asked: the only one, else `origin`."""
        keys = self.lines("config", "--name-only", "--get-regexp", r"^remote\..*\.url$") or []
        remotes = {key.removeprefix("remote.").removesuffix(".url") for key in keys}
        return remotes.pop() if len(remotes) == 1 else "origin"

    @property
    def remote_branches(self) -> str:
        """The start of the names that the remote's branches have here."""
        return f"refs/remotes/{self.remote}/"

    def text(
        self,
        *arguments: str,
        settings: Mapping[str, str] | None = None,
        limit_seconds: float | None = None,
    ) -> str | None:
        """Returns standard output without its last newline, None if git fails or does not end."""
        content = BytesIO()
        code, _ = _run_git(
            self.root, arguments, content, settings=settings, limit_seconds=limit_seconds
        )
        body = content.getvalue() if code == 0 else None
        return None if body is None else body.decode("utf-8", "surrogateescape").rstrip("\n")

    def lines(self, *arguments: str, limit_seconds: float | None = None) -> list[str] | None:
        """Returns the lines of the output, None if git fails or does not end. Only a newline ends
        one: names of branches, tags and people may have the other characters that Python splits
        at."""
        text = self.text(*arguments, limit_seconds=limit_seconds)
        return None if text is None else text.split("\n") if text else []

    def answer(self, *arguments: str, standard_input: bytes = b"") -> bytes:
        """Returns the output of a command that has no reason to fail. Raises RevisionError if it
        does, or does not end in time."""
        output = self.output(*arguments, standard_input=standard_input)
        if output is None:
            what = f"{self.root}: git {arguments[0]} failed, was killed or did not end"
            raise RevisionError(f"{what} in {_MAX_SECONDS} s. Run it again.")
        return output

    def output(
        self,
        *arguments: str,
        standard_input: bytes = b"",
        settings: Mapping[str, str] | None = None,
        limit_seconds: float | None = None,
    ) -> bytes | None:
        """Returns the output of git with these additional settings, None if it fails or does not
        end. Raises RevisionError for one that is too long."""
        what = f"{self.root}: git {arguments[0]} prints over {_MAX_OUTPUT_BYTES >> 20} MiB"
        error = RevisionError(f"{what}. Compare commits with fewer files.")
        content = Bounded(_MAX_OUTPUT_BYTES, error)
        is_said = self.copy(
            *arguments,
            into=content,
            standard_input=standard_input,
            settings=settings,
            limit_seconds=limit_seconds,
        )
        return content.getvalue() if is_said else None

    def copy(
        self,
        *arguments: str,
        into: Writer,
        standard_input: bytes = b"",
        settings: Mapping[str, str] | None = None,
        limit_seconds: float | None = None,
    ) -> bool:
        """Copies standard output into the writer piece by piece, and returns whether git
        succeeded."""
        code, _ = _run_git(
            self.root, arguments, into, standard_input, settings, limit_seconds=limit_seconds
        )
        return code == 0

    def complaint(self, *arguments: str, limit_seconds: float | None = None) -> str:
        """Returns what git says that it ends for, '' if it succeeds."""
        code, errors = _run_git(self.root, arguments, BytesIO(), limit_seconds=limit_seconds)
        return _fault(code, errors)

    def without_filters(self) -> dict[str, str]:
        """Returns settings that turn off the configured filters for working tree files; the
        checkout's attributes decide which files those would run on."""
        settings = self.text("config", "-z", "--name-only", "--get-regexp", r"^filter\.") or ""
        names = {name.rpartition(".")[0] for name in settings.split("\0") if name}
        off = {"clean": "", "smudge": "", "process": "", "required": "false"}
        return {f"{name}.{key}": value for name in sorted(names) for key, value in off.items()}

    def _checked_git_dir(self, path: Path) -> Path:
        """Returns the git directory. Git finds it from the working tree, so that it checks its
        owner."""
        output = BytesIO()
        code, errors = _run_git(self.root, ("rev-parse", "--absolute-git-dir"), output)
        if b"safe.directory" in errors:
            message = (
                f"{self.root}: belongs to another user, so git does not read it. "
                f"Run: git config --global --add safe.directory {self.root}"
            )
            raise RevisionError(message)
        git_dir = Path(os.fsdecode(output.getvalue()).removesuffix("\n"))
        fault = _fault(code, errors)
        if fault and not fault.startswith("not a git repository"):
            raise RevisionError(f"{self.root}: git cannot read it ({fault}).")
        if fault or _is_content(git_dir, self.root):
            raise _no_repository(path)
        return git_dir

    def _check_settings(self) -> None:
        """Raises for committed settings: a settings file may include one of the checkout, or the
        home directory may be in it."""
        output = self.text("config", "-z", "--list", "--show-origin", "--name-only") or ""
        words = iter(output.split("\0"))
        settings = {(origin, key) for origin, key in zip(words, words, strict=False)}
        for origin, key in sorted(settings):
            if is_of_a_fetch(key) and self._is_tracked(origin.removeprefix("file:")):
                message = (
                    f"{self.root}: git takes {key} from {origin.removeprefix('file:')}, a file "
                    "that anybody can change who changes the checkout. Set it in .git/config."
                )
                raise RevisionError(message)

    def _is_tracked(self, file: str) -> bool:
        path = Path(os.path.normpath(self.root / file))
        return any(
            self.text("ls-files", "--error-unmatch", "--", str(place)) is not None
            for place in {path, path.resolve()}
            if place.is_relative_to(self.root)
        )


def escaped(text: str) -> str:
    """Returns git's text for people. Bytes that are not UTF-8, which JSON cannot hold, are
    escaped."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def git_version() -> tuple[int, ...]:
    """Returns the numbers of git's version, such as 2, 39, 5, and none without git."""
    output = BytesIO()
    with contextlib.suppress(EnvironmentUnfitError):
        _run_git(Path("/"), ("version",), output)
    words = output.getvalue().decode(errors="replace").split()
    return tuple(int(part) for part in (*words, "", "")[2].split(".") if part.isdigit())


def new_repository(root: Path) -> GitProcess:
    """Creates an empty repository on branch `main`."""
    root.mkdir(parents=True)
    _run_git(root, ("init", "-q", "--initial-branch=main"), BytesIO())
    return GitProcess(root)


def _working_tree(path: Path) -> Path:
    """Returns the checkout's root, found by ourselves. Git, run inside, takes a directory shaped
    like a bare repository for one, and the settings committed in it for its own."""
    place = path.resolve()
    tree = working_tree(place) if place.is_dir() else None
    if tree is None:
        raise _no_repository(path)
    return tree


def _is_content(git_dir: Path, root: Path) -> bool:
    """Returns whether the git directory is content of the checkout: a `.git` file may name any."""
    return git_dir.is_relative_to(root) and ".git" not in git_dir.relative_to(root).parts


def _fault(code: int, errors: bytes) -> str:
    """Returns what git says that it ends for, on one line, '' for a success. A git that is killed
    says nothing. Of a remote that cannot be read, the reason comes first."""
    text = errors.decode(errors="replace")
    said = text.rpartition("fatal: Could not read from remote repository")[0] or text
    words = " ".join(said.rpartition("fatal: ")[2].split()).rstrip(".")
    return (words or f"it ended with {code}") if code else ""


def _no_repository(path: Path) -> RevisionError:
    message = (
        f"{path}: not a git repository with a working tree. Run inside one, or name it with "
        f"--repository."
    )
    return RevisionError(message)


def _run_git(
    root: Path,
    arguments: tuple[str, ...],
    into: Writer,
    standard_input: bytes = b"",
    settings: Mapping[str, str] | None = None,
    *,
    limit_seconds: float | None = None,
) -> tuple[int, bytes]:
    """Runs git, and returns its exit code and standard error. If git is stopped, by its limit, an
    interrupt or the writer, so are the processes it started."""
    pairs = {**SETTINGS, **(settings or {})}.items()
    words = (word for key, value in pairs for word in ("-c", f"{key}={value}"))
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as errors:
        stdin.write(standard_input)
        stdin.seek(0)
        with (
            interpreter.marking_programs() as mark,
            _start(["git", *words, *arguments], root, stdin, errors, mark) as process,
        ):
            alarm = threading.Timer(limit_seconds or _MAX_SECONDS, _end, [process, mark])
            try:
                interpreter.mark_process(process.pid, mark)
                alarm.start()
                with interpreter.group_guard(process.pid):
                    while piece := cast("BufferedReader", process.stdout).read1(_PIECE_BYTES):
                        into.write(piece)
                    process.wait()
            except BaseException:
                _end(process, mark)
                process.wait()
                raise
            finally:
                alarm.cancel()
        errors.seek(0)
        return process.returncode, errors.read()


def _start(
    line: list[str], root: Path, stdin: IO[bytes], errors: IO[bytes], mark: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            line,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**git_environment(root, absolute_only(dict(os.environ))), **mark},
            cwd=root,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        message = "git: not found on the PATH. Install git."
        raise EnvironmentUnfitError(message) from error


def _end(process: subprocess.Popen[bytes], mark: Mapping[str, str]) -> None:
    """Ends git with all that it started: whatever keeps its output open is waited for."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    interpreter.end_marked(mark)


# The settings that git gets: nothing of the repository's settings starts a program here, except
# what a fetch needs, or changes what is read.

_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "LC_ALL": "C",
}
_PROTOCOLS = ("file", "git", "http", "https", "ssh")
_NO_PROTOCOLS = ("ext", "fd")
"""Protocols whose address is a command, or the number of an open file."""
_OF_ANOTHER_REPOSITORY = (
    *("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_PREFIX"),
    *("GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
    *("GIT_GRAFT_FILE", "GIT_SHALLOW_FILE", "GIT_REPLACE_REF_BASE", "GIT_NAMESPACE"),
    *("GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"),
    *("GIT_EXTERNAL_DIFF", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_CONFIG"),
)
"""The variables that name a hook's repository while it runs, or other paths than we do."""
_OF_A_CHECKOUT = ("GIT_LFS_SKIP_SMUDGE",)
"""The variable that leaves LFS files out of a checkout. The files we ask for are needed."""
SETTINGS = {
    "safe.bareRepository": "explicit",
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.alternateRefsCommand": "true",
    "core.quotePath": "false",
    "log.showSignature": "false",
    # The advice is about our own GIT_GRAFT_FILE.
    "advice.graftFileDeprecated": "false",
    # A fetch may start `gc --auto`, which outlives us and repacks what we read.
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_OF_A_FETCH = (
    *("core.sshcommand", "core.gitproxy", "core.askpass", "credential.", "remote.", "url."),
    *("http.", "https.", "ssh.", "uploadpack.", "lfs.", "extensions."),
    "hook.",
)
"""Settings that stay as they are: they name servers and programs that a fetch needs, or runs."""


def git_environment(root: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment for git in this working tree, whatever repository the variables
    name."""
    environment = dict(variables)
    for name in (*_OF_ANOTHER_REPOSITORY, *_OF_A_CHECKOUT):
        environment.pop(name, None)
    protocols = environment.get("GIT_ALLOW_PROTOCOL", ":".join(_PROTOCOLS)).split(":")
    return {
        **environment,
        **_ENVIRONMENT,
        "GIT_CEILING_DIRECTORIES": str(root.parent),
        "GIT_ALLOW_PROTOCOL": ":".join(each for each in protocols if each not in _NO_PROTOCOLS),
    }


def is_of_a_fetch(key: str) -> bool:
    return key.lower().startswith(_OF_A_FETCH)
