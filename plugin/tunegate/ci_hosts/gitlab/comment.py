"""One note for each merge request and output directory, written again by every pipeline."""

from __future__ import annotations

from typing import Any

from tunegate.ci_hosts.gitlab.note_text import note_text
from tunegate.ci_hosts.protocol import HostRefusedError
from tunegate.ci_hosts.report_marker import report_marker
from tunegate.ci_hosts.rest_api import RestApi
from tunegate.ci_hosts.secret import Secret

MAX_NOTE_CHARACTERS = 900_000
_PAGE = 100
_MAX_PAGES = 30


class Notes:
    """Those of one merge request. `api` is CI_API_V4_URL."""

    def __init__(self, api: str, project: int, number: int, token: Secret) -> None:
        """Raises HostRefusedError."""
        self._api = RestApi("GitLab", api, {"PRIVATE-TOKEN": token.reveal()})
        self._path = f"/projects/{project}/merge_requests/{number}/notes"

    def publish(self, name: str, markdown: str) -> None:
        """Replace our note, or write the first one. Raises HostRefusedError."""
        first = report_marker(name)
        body = {"body": f"{first}\n{note_text(markdown)}"[:MAX_NOTE_CHARACTERS]}
        known = self._ours(first)
        if known is None:
            self._api.ask("POST", self._path, body)
        else:
            self._api.ask("PUT", f"{self._path}/{known}", body)

    def _ours(self, first: str) -> int | None:
        me = self._id_of(self._api.ask("GET", "/user"))
        for page in range(1, _MAX_PAGES + 1):
            ordered = f"?sort=asc&order_by=created_at&per_page={_PAGE}&page={page}"
            batch = self._api.ask("GET", self._path + ordered)
            if not isinstance(batch, list):
                raise HostRefusedError("GitLab answered with no list of notes")
            found = next((each for each in batch if _is_ours(each, first, me)), None)
            if found is not None:
                return self._id_of(found)
            if len(batch) < _PAGE:
                return None
        return None

    def _id_of(self, answer: Any) -> int:  # noqa: ANN401 -- JSON
        found = answer.get("id") if isinstance(answer, dict) else None
        if type(found) is not int:
            raise HostRefusedError("GitLab answered without an id")
        return found


def _is_ours(note: Any, first: str, me: int) -> bool:  # noqa: ANN401 -- JSON
    """The marker alone could be planted by anybody who may comment: it must be of this token's
    user."""
    if not isinstance(note, dict) or not isinstance(note.get("author"), dict):
        return False
    return note["author"].get("id") == me and str(note.get("body", "")).startswith(first)
