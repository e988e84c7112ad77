"""A comment for each report, replaced by every run: the same rules for every CI.

Ours is found by its first line and by its author. It is never written twice for a lost answer.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from tunegate.ci.http import RestRefusedError

_Id = TypeVar("_Id")
_GONE = frozenset({404, 410})


class CommentThread(Protocol[_Id]):
    """The comments of one pull request. Each method raises HostRefusedError."""

    def ours(self) -> _Id | None:
        """Ours among all of them; None where there is none."""
        ...

    def write(self, text: str) -> None: ...

    def rewrite(self, known: _Id, text: str) -> None: ...


class KeptComment(Generic[_Id]):
    """Our comment in a thread."""

    def __init__(self, thread: CommentThread[_Id]) -> None:
        self._thread = thread

    def publish(self, text: str, *, updates_only: bool = False) -> None:
        """Replaces our comment, or writes the first one, unless only an earlier one is updated.
        Raises HostRefusedError."""
        known = self._thread.ours()
        if known is not None and self._is_rewritten(known, text):
            return
        if not updates_only:
            self._write(text)

    def _is_rewritten(self, known: _Id, text: str) -> bool:
        """Returns False where somebody has deleted it meanwhile."""
        try:
            self._thread.rewrite(known, text)
        except RestRefusedError as error:
            if error.status not in _GONE:
                raise
            return False
        return True

    def _write(self, text: str) -> None:
        """Looks for the comment when the answer was lost, and writes once more if there is none."""
        try:
            self._thread.write(text)
        except RestRefusedError as error:
            if not error.may_be_done:
                raise
            if self._thread.ours() is None:
                self._thread.write(text)


# The hidden first line by which a later job finds the comment of an earlier one.


def report_marker(name: str) -> str:
    """The first line of the report under this name: an HTML comment, which no Markdown shows."""
    plain = "".join(c for c in name if c.isalnum() or c in "._-/")
    return f"<!-- tunegate:report {plain} -->"
