"""The thread with the report on a pull request of Azure Repos."""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from urllib.parse import quote

from tunegate.ci.comments import KeptComment, report_marker
from tunegate.ci.http import RestApi
from tunegate.ci.protocol import HostRefusedError, Secret
from tunegate.report.markdown import fit_text

MAX_THREAD_CHARACTERS = 149_000
_VERSION = "api-version=7.0"
_REFERENCE = re.compile(r"\]\(https?://[^\s()]*\)|(?<!&)(?P<mark>[@#!])(?=[<\w])")
"""Keeps addresses, and matches references to a person, a work item or a pull request."""
_ZERO_WIDTH = "\u200b"


class KnownThread(NamedTuple):
    """Our thread, and its first comment, which is the report."""

    thread: int
    comment: int


class Threads:
    """Threads of one pull request, under the name of one report. `project` is the address of the
    team project."""

    def __init__(
        self, collection: str, project: str, pull_request: tuple[str, int], name: str, token: Secret
    ) -> None:
        """Raises HostRefusedError. A pull request is identified by its repository and number."""
        repository, number = pull_request
        headers = {"Authorization": f"Bearer {token.reveal()}"}
        self._api = RestApi("Azure DevOps", collection, headers)
        place = f"/{quote(project)}/_apis/git/repositories/{quote(repository, safe='')}"
        self._path = f"{place}/pullRequests/{number}/threads"
        self._first = report_marker(name)
        self._me = ""

    def publish(self, markdown: str, *, updates_only: bool = False) -> None:
        """Replaces our thread's report, or writes the first one. Raises HostRefusedError."""
        room = MAX_THREAD_CHARACTERS - len(self._first) - 1
        body = f"{self._first}\n{thread_text(fit_text(markdown, room * 9 // 10))}"
        KeptComment(self).publish(body[:MAX_THREAD_CHARACTERS], updates_only=updates_only)

    def find_own_comment(self) -> KnownThread | None:
        """Returns our thread. Anybody who may comment could plant the marker: it must be by this
        token's identity."""
        if not self._me:
            self._me = _identity(self._api.ask("GET", "/_apis/connectionData"))
        answer = self._api.ask("GET", f"{self._path}?{_VERSION}")
        threads = answer.get("value") if isinstance(answer, dict) else None
        if not isinstance(threads, list):
            raise HostRefusedError("Azure DevOps answered with no list of threads")
        found = (self._ours_in(each) for each in threads)
        return next((each for each in found if each is not None), None)

    def write(self, text: str) -> None:
        """Writes a closed thread: nobody has to resolve it."""
        comment = {"parentCommentId": 0, "content": text, "commentType": "text"}
        body = {"comments": [comment], "status": "closed"}
        self._api.ask("POST", f"{self._path}?{_VERSION}", body)

    def rewrite(self, thread: KnownThread, text: str) -> None:
        path = f"{self._path}/{thread.thread}/comments/{thread.comment}?{_VERSION}"
        self._api.ask("PATCH", path, {"content": text})

    def _ours_in(self, thread: Any) -> KnownThread | None:  # noqa: ANN401 -- JSON
        if not isinstance(thread, dict) or thread.get("isDeleted") is True:
            return None
        comments = thread.get("comments")
        first = comments[0] if isinstance(comments, list) and comments else None
        if not isinstance(first, dict) or not self._is_ours(first):
            return None
        return KnownThread(thread=_number(thread), comment=_number(first))

    def _is_ours(self, comment: dict[str, Any]) -> bool:
        author = comment.get("author")
        is_mine = isinstance(author, dict) and author.get("id") == self._me
        is_there = comment.get("isDeleted") is not True
        return is_mine and is_there and str(comment.get("content", "")).startswith(self._first)


def thread_text(markdown: str) -> str:
    """Returns the same text for a reader, without mentions and references."""
    return _REFERENCE.sub(
        lambda found: found.group() + (_ZERO_WIDTH if found["mark"] else ""), markdown
    )


def _number(answer: dict[str, Any]) -> int:
    found = answer.get("id")
    if type(found) is not int:
        raise HostRefusedError("Azure DevOps answered without an id")
    return found


def _identity(answer: Any) -> str:  # noqa: ANN401 -- JSON
    user = answer.get("authenticatedUser") if isinstance(answer, dict) else None
    found = user.get("id") if isinstance(user, dict) else None
    if not isinstance(found, str) or not found:
        raise HostRefusedError("Azure DevOps answered without an identity")
    return found
