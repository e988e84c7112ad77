"""Keeps one comment per report, replaced by every run: the same rules for every CI.

Ours is recognized by its first line and its author. After a lost answer it is never written twice.
"""

import re
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from tunegate.artifacts.changes import Revisions
from tunegate.ci.http import RestRefusedError
from tunegate.ci.protocol import Links
from tunegate.report.escape import code

_Id = TypeVar("_Id")
_GONE = frozenset({404, 410})


class CommentThread(Protocol[_Id]):
    """The comments of one pull request. Each method raises HostRefusedError."""

    def find_own_comment(self) -> _Id | None:
        """Returns our comment, None if there is none."""
        ...

    def write(self, text: str) -> None: ...

    def rewrite(self, comment: _Id, text: str) -> None: ...


class KeptComment(Generic[_Id]):
    """Our comment in a thread."""

    def __init__(self, thread: CommentThread[_Id]) -> None:
        self._thread = thread

    def publish(self, text: str, *, updates_only: bool = False) -> None:
        """Replaces our comment, or writes the first one unless `updates_only`. Raises
        HostRefusedError."""
        comment = self._thread.find_own_comment()
        if comment is not None and self._is_rewritten(comment, text):
            return
        if not updates_only:
            self._write(text)

    def _is_rewritten(self, comment: _Id, text: str) -> bool:
        """Rewrites the comment; returns False if somebody has deleted it meanwhile."""
        try:
            self._thread.rewrite(comment, text)
        except RestRefusedError as error:
            if error.status not in _GONE:
                raise
            return False
        return True

    def _write(self, text: str) -> None:
        """Writes a comment. If the answer is lost, it looks for the comment, and writes once more
        if there is none."""
        try:
            self._thread.write(text)
        except RestRefusedError as error:
            if not error.may_be_done:
                raise
            if self._thread.find_own_comment() is None:
                self._thread.write(text)


# The hidden first line by which a later job finds an earlier job's comment.


def report_marker(name: str) -> str:
    """Returns the first line of the report under this name: an HTML comment, which Markdown
    hides."""
    plain = "".join(c for c in name if c.isalnum() or c in "._-/")
    return f"<!-- tunegate:report {plain} -->"


# The text of a comment: the report, and where to look further. Pure.

NO_CHANGE = """### ✅ No configured model changes any more

An earlier commit of this pull request changed one. What was reported for it is no longer true.
"""
_ADDRESS = re.compile(r"https?://[^\s()<>\"'`|\\]+")
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_SHOWN_ID = 7


def with_links(
    markdown: str, links: Links, revisions: Revisions | None = None, *, job: str = ""
) -> str:
    """Returns the report with a line of links below its first line, leaving out suspicious
    addresses. The job's name comes from a workflow, so it may be anything."""
    pages = (("This run", links.run), ("whole report", links.report), *_commits(links, revisions))
    page_links = [f"[{name}]({address})" for name, address in pages if _ADDRESS.fullmatch(address)]
    if job:
        page_links.insert(0, f"Job {code(job)}")
    first, _, rest = markdown.strip().partition("\n\n")
    parts = (first, " · ".join(page_links), rest)
    return "\n\n".join(filter(None, parts)) + "\n" if page_links and first else markdown


def _commits(links: Links, revisions: Revisions | None) -> Iterator[tuple[str, str]]:
    """Yields the pages of base and head if both are commits: digests of content have no page."""
    if revisions is None or revisions.pins or not links.commit:
        return
    for side, commit in (("base", revisions.base or ""), ("head", revisions.head)):
        if _COMMIT.fullmatch(commit):
            yield f"{side} {commit[:_SHOWN_ID]}", f"{links.commit}{commit}"
