"""The comments of one pull request, and whose they are."""

from __future__ import annotations

from typing import Any

from tunegate.ci_hosts.kept_comment import KeptComment
from tunegate.ci_hosts.protocol import HostRefusedError
from tunegate.ci_hosts.report_marker import report_marker
from tunegate.ci_hosts.rest_api import RestApi
from tunegate.fitted_markdown import fitted_text

MAX_COMMENT_CHARACTERS = 65_000
"""GitHub takes 65,536."""
JOBS_OWN = "github-actions[bot]"
"""The login that a job's token writes as."""
_PAGE = 100
_MAX_PAGES = 30


class Comments:
    """Those of one pull request. `api` is that of the repository, `author` the login that its token
    writes as."""

    def __init__(self, api: RestApi, repository: str, number: int, name: str, author: str) -> None:
        self._api = api
        self._repository = f"/repos/{repository}"
        self._comments = f"{self._repository}/issues/{number}/comments"
        self._first = report_marker(name)
        self._author = author

    def publish(self, text: str, *, updates_only: bool = False) -> None:
        """Raises HostRefusedError."""
        room = MAX_COMMENT_CHARACTERS - len(self._first)
        body = f"{self._first}\n{fitted_text(text, room)}"
        KeptComment(self).publish(body, updates_only=updates_only)

    def ours(self) -> int | None:
        """The marker alone could be planted by anybody who may comment: the author must be us."""
        for page in range(1, _MAX_PAGES + 1):
            batch = self._api.ask("GET", f"{self._comments}?per_page={_PAGE}&page={page}")
            try:
                found = next((int(each["id"]) for each in batch if self._is_ours(each)), None)
            except (TypeError, ValueError, KeyError, AttributeError):
                raise HostRefusedError("GitHub answered with no list of comments") from None
            if found is not None or len(batch) < _PAGE:
                return found
        return None

    def write(self, text: str) -> None:
        self._api.ask("POST", self._comments, {"body": text})

    def rewrite(self, known: int, text: str) -> None:
        self._api.ask("PATCH", f"{self._repository}/issues/comments/{known}", {"body": text})

    def _is_ours(self, comment: dict[str, Any]) -> bool:
        author = (comment.get("user") or {}).get("login")
        return author == self._author and str(comment.get("body", "")).startswith(self._first)
