"""One comment for each pull request and output directory, written again by every run."""

from __future__ import annotations

from typing import Any

from tunegate.ci_hosts.protocol import HostRefusedError
from tunegate.ci_hosts.report_marker import report_marker
from tunegate.ci_hosts.rest_api import RestApi
from tunegate.ci_hosts.secret import Secret

MAX_COMMENT_CHARACTERS = 64_000
_BOT = "Bot"
_PAGE = 100
_MAX_PAGES = 30


class Comments:
    """Those of one pull request. `api` is GITHUB_API_URL, so that GHES works too."""

    def __init__(self, api: str, repository: str, number: int, token: Secret) -> None:
        """Raises HostRefusedError."""
        self._number = number
        headers = {
            "Authorization": f"Bearer {token.reveal()}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        self._api = RestApi("GitHub", f"{api.rstrip('/')}/repos/{repository}", headers)

    def publish(self, name: str, text: str) -> None:
        """Update our comment, or write the first one. Raises HostRefusedError."""
        first = report_marker(name)
        body = {"body": f"{first}\n{text}"[:MAX_COMMENT_CHARACTERS]}
        known = self._ours(first)
        if known is None:
            self._api.ask("POST", f"/issues/{self._number}/comments", body)
        else:
            self._api.ask("PATCH", f"/issues/comments/{known}", body)

    def _ours(self, first: str) -> int | None:
        for page in range(1, _MAX_PAGES + 1):
            path = f"/issues/{self._number}/comments?per_page={_PAGE}&page={page}"
            batch = self._api.ask("GET", path)
            try:
                found = next((int(each["id"]) for each in batch if _is_ours(each, first)), None)
            except (TypeError, ValueError, KeyError, AttributeError):
                raise HostRefusedError("GitHub answered with no list of comments") from None
            if found is not None or len(batch) < _PAGE:
                return found
        return None


def _is_ours(comment: dict[str, Any], first: str) -> bool:
    """The marker alone could be planted by anybody who may comment;
    the author must be a bot too."""
    is_bot = (comment.get("user") or {}).get("type") == _BOT
    return is_bot and str(comment.get("body", "")).startswith(first)
