"""The notes of one merge request, and which of them is ours."""

from __future__ import annotations

from typing import Any

from tunegate.ci_hosts.gitlab.note_text import note_text
from tunegate.ci_hosts.kept_comment import KeptComment
from tunegate.ci_hosts.protocol import HostRefusedError
from tunegate.ci_hosts.report_marker import report_marker
from tunegate.ci_hosts.rest_api import RestApi
from tunegate.ci_hosts.secret import Secret
from tunegate.fitted_markdown import fitted_text

MAX_NOTE_CHARACTERS = 900_000
_PAGE = 100
_MAX_PAGES = 30


class Notes:
    """Those of one merge request, under the name of one report. `api` is CI_API_V4_URL."""

    def __init__(self, api: str, project: int, number: int, name: str, token: Secret) -> None:
        """Raises HostRefusedError."""
        self._api = RestApi("GitLab", api, {"PRIVATE-TOKEN": token.reveal()})
        self._path = f"/projects/{project}/merge_requests/{number}/notes"
        self._first = report_marker(name)
        self._me: int | None = None

    def publish(self, markdown: str, *, updates_only: bool = False) -> None:
        """Raises HostRefusedError."""
        room = MAX_NOTE_CHARACTERS - len(self._first) - 1
        body = f"{self._first}\n{fitted_text(note_text(markdown), room)}"
        KeptComment(self).publish(body, updates_only=updates_only)

    def ours(self) -> int | None:
        """The marker alone could be planted by anybody who may comment: it must be of this token's
        user."""
        if self._me is None:
            self._me = _id_of(self._api.ask("GET", "/user"))
        for page in range(1, _MAX_PAGES + 1):
            ordered = f"?sort=asc&order_by=created_at&per_page={_PAGE}&page={page}"
            batch = self._api.ask("GET", self._path + ordered)
            if not isinstance(batch, list):
                raise HostRefusedError("GitLab answered with no list of notes")
            found = next((each for each in batch if self._is_ours(each)), None)
            if found is not None:
                return _id_of(found)
            if len(batch) < _PAGE:
                return None
        return None

    def write(self, text: str) -> None:
        self._api.ask("POST", self._path, {"body": text})

    def rewrite(self, known: int, text: str) -> None:
        self._api.ask("PUT", f"{self._path}/{known}", {"body": text})

    def _is_ours(self, note: Any) -> bool:  # noqa: ANN401 -- JSON
        if not isinstance(note, dict) or not isinstance(note.get("author"), dict):
            return False
        is_mine = note["author"].get("id") == self._me
        return is_mine and str(note.get("body", "")).startswith(self._first)


def _id_of(answer: Any) -> int:  # noqa: ANN401 -- JSON
    found = answer.get("id") if isinstance(answer, dict) else None
    if type(found) is not int:
        raise HostRefusedError("GitLab answered without an id")
    return found
