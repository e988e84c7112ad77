"""The comments of one pull request of Bitbucket, and which of them are ours.

A repository's token cannot ask who it is, but can change only its own comments: of those that begin
as ours do, the one that can be rewritten is ours.
"""

from __future__ import annotations

from typing import Any

from tunegate.ci.comments import KeptComment
from tunegate.ci.http import RestApi, RestRefusedError
from tunegate.ci.protocol import HostRefusedError, Secret
from tunegate.report.markdown import fit_text
from tunegate_ci_hosts.bitbucket.comment_text import bitbucket_marker, comment_text

API = "https://api.bitbucket.org/2.0"
MAX_BITBUCKET_CHARACTERS = 32_000
_MAX_PAGES = 30
_MAX_TRIED = 20
_NOT_OURS = frozenset({403, 404, 410})
_GONE = 404


class BitbucketComments:
    """Comments of one pull request, under the name of one report. `repository` is its full name."""

    def __init__(self, repository: str, number: int, name: str, token: Secret) -> None:
        """Raises HostRefusedError."""
        self._api = RestApi("Bitbucket", API, {"Authorization": f"Bearer {token.reveal()}"})
        self._path = f"/repositories/{repository}/pullrequests/{number}/comments"
        self._first = bitbucket_marker(name)

    def publish(self, markdown: str, *, updates_only: bool = False) -> None:
        """Replaces our comment, or writes the first one. Raises HostRefusedError."""
        room = MAX_BITBUCKET_CHARACTERS - len(self._first) - 2
        shown = comment_text(markdown)
        body = f"{self._first}\n\n{fit_text(shown, room)}"
        KeptComment(self).publish(body, updates_only=updates_only)

    def find_own_comment(self) -> tuple[int, ...] | None:
        """Returns the comments that begin as ours do, newest first."""
        found: list[int] = []
        for page in range(1, _MAX_PAGES + 1):
            answer = self._api.ask("GET", f"{self._path}?pagelen=100&page={page}")
            values = answer.get("values") if isinstance(answer, dict) else None
            if not isinstance(values, list):
                raise HostRefusedError("Bitbucket answered with no list of comments")
            found += [each["id"] for each in values if self._may_be_ours(each)]
            if not answer.get("next"):
                break
        return tuple(reversed(found))[:_MAX_TRIED] or None

    def write(self, text: str) -> None:
        self._api.ask("POST", self._path, {"content": {"raw": text}})

    def rewrite(self, comments: tuple[int, ...], text: str) -> None:
        """Rewrites ours. Raises RestRefusedError if none of them is, as for a comment that is
        gone."""
        for number in comments:
            try:
                self._api.ask("PUT", f"{self._path}/{number}", {"content": {"raw": text}})
            except RestRefusedError as error:
                if error.status not in _NOT_OURS:
                    raise
            else:
                return
        raise RestRefusedError("Bitbucket has no comment of this token", _GONE)

    def _may_be_ours(self, comment: Any) -> bool:  # noqa: ANN401 -- JSON
        if not isinstance(comment, dict) or type(comment.get("id")) is not int:
            return False
        content = comment.get("content")
        raw = content.get("raw") if isinstance(content, dict) else None
        is_there = comment.get("deleted") is not True
        return is_there and isinstance(raw, str) and raw.startswith(self._first)
