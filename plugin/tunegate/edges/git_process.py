"""Git as a child process: no hooks, no pager, no prompt, nothing of the user's diff settings."""

from __future__ import annotations

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
_NO_HOOKS = ("-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false")


class GitProcess:
    """Runs git in one repository."""

    def __init__(self, path: Path) -> None:
        """Raises RevisionError where there is no repository."""
        try:
            repo = git.Repo(path, search_parent_directories=True)
        except (git.InvalidGitRepositoryError, git.NoSuchPathError) as error:
            message = f"{path}: not a git repository. Run inside one, or name it with --repository."
            raise RevisionError(message) from error
        self.root = Path(repo.working_tree_dir or repo.git_dir)
        self.git_dir = Path(repo.git_dir)
        self._git = git.Git(str(self.root))
        self._git.update_environment(**_ENVIRONMENT)
        repo.close()

    def text(self, *arguments: str) -> str | None:
        """Standard output without its last newline; None when git says no."""
        body = self.bytes(*arguments)
        return None if body is None else body.decode("utf-8", "surrogateescape").rstrip("\n")

    def bytes(self, *arguments: str) -> bytes | None:
        try:
            output: bytes = self._git.execute(
                ["git", *_NO_HOOKS, *arguments],
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                with_extended_output=False,
            )
        except GitCommandError:
            return None
        return output
