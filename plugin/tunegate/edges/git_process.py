"""Git as a child process: no hooks, no pager, no prompt, nothing of the user's diff settings."""

from __future__ import annotations

import tempfile
from pathlib import Path

import git
from git.exc import GitCommandError

from tunegate.errors import RevisionError

_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_LITERAL_PATHSPECS": "1",
    "LC_ALL": "C",
}
# A fetch may start `gc --auto`, which lives on behind us and repacks what we read.
_SETTINGS = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.quotePath=false"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
)
_LONGEST_SECONDS = 900
"""A remote that does not answer must not hold a job for hours; a download may take minutes."""


class GitProcess:
    """Runs git in one repository, whatever GIT_DIR says: inside a hook it names another one."""

    def __init__(self, path: Path) -> None:
        """Raises RevisionError where there is no repository, or git refuses to read it."""
        try:
            repo = git.Repo(path, search_parent_directories=True, expand_vars=False)
        except (git.InvalidGitRepositoryError, git.NoSuchPathError) as error:
            message = f"{path}: not a git repository. Run inside one, or name it with --repository."
            raise RevisionError(message) from error
        self.root = Path(repo.working_tree_dir or repo.git_dir)
        self.git_dir = Path(repo.git_dir)
        repo.close()
        self._git = git.Git(str(self.root))
        self._git.update_environment(**_ENVIRONMENT)
        self._check_readable()

    def text(self, *arguments: str) -> str | None:
        """Standard output without its last newline; None when git says no."""
        body = self.output(*arguments)
        return None if body is None else body.decode("utf-8", "surrogateescape").rstrip("\n")

    def output(self, *arguments: str, standard_input: bytes = b"") -> bytes | None:
        try:
            return self._run([f"--git-dir={self.git_dir}", *arguments], standard_input)
        except GitCommandError:
            return None

    def _run(self, arguments: list[str], standard_input: bytes) -> bytes:
        with tempfile.TemporaryFile() as stdin:
            stdin.write(standard_input)
            stdin.seek(0)
            output: bytes = self._git.execute(
                ["git", *_SETTINGS, *arguments],
                istream=stdin,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                with_extended_output=False,
                kill_after_timeout=_LONGEST_SECONDS,
            )
        return output

    def _check_readable(self) -> None:
        """Without --git-dir: naming it would switch off the check of who owns the repository."""
        try:
            self._run(["rev-parse", "--git-dir"], b"")
        except GitCommandError as error:
            if "safe.directory" not in error.stderr:
                return  # a GIT_DIR that leads nowhere; we do not follow it
            message = (
                f"{self.root}: belongs to another user, so git does not read it. "
                f"Run: git config --global --add safe.directory {self.root}"
            )
            raise RevisionError(message) from error
