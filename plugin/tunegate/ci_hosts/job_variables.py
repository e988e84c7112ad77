"""The variables of a CI job, checked: a value that contradicts its name is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tunegate.errors import ConfigError

GIVEN = "Or name --base and --head, the two commits to compare."
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NUMBER = re.compile(r"[1-9][0-9]{0,18}")
_DEFAULT_BRANCH = "TUNEGATE_DEFAULT_BRANCH"
"""The variable of ours for CIs that do not say which branch is the default one."""


class JobVariables:
    """Those of one job."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def text(self, name: str) -> str:
        """An empty string where it is not set."""
        return self._environment.get(name, "").strip()

    def commit(self, name: str) -> str:
        """A full commit id. Raises ConfigError for anything else."""
        found = self.text(name)
        if not _COMMIT.fullmatch(found):
            raise contradiction(f"{name} is no commit")
        return found

    def commit_or_none(self, name: str) -> str | None:
        """A full commit id; None where the variable holds none, or only the beginning of one."""
        found = self.text(name)
        return found if _COMMIT.fullmatch(found) else None

    def number(self, name: str) -> int | None:
        """A number from one on; None where the variable holds none."""
        found = self.text(name)
        return int(found) if _NUMBER.fullmatch(found) else None

    def required_number(self, name: str) -> int:
        """Raises ConfigError."""
        found = self.number(name)
        if found is None:
            raise contradiction(f"{name} is no number")
        return found

    def branch(self, name: str) -> str:
        """The name of a branch, without what stands before it in a full reference."""
        return self.text(name).removeprefix("refs/heads/")

    def default_branch(self) -> str:
        """The default branch by the variable of ours; '' where git has to find it."""
        return self.branch(_DEFAULT_BRANCH)


def contradiction(what: str) -> ConfigError:
    return ConfigError(f"the job cannot be used: {what}. {GIVEN}")
