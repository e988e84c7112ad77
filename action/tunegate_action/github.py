"""The few REST calls of the comment. The only HTTP of the product besides S3."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from tunegate_action.inputs import Secret

_SECONDS = 10
_PAGE = 100
_MAX_PAGES = 30


class GitHubRefusedError(Exception):
    """The API did not do what was asked; the text says why, without any secret."""


class GitHub:
    """Comments of one repository. `api` is GITHUB_API_URL, so that GHES works too."""

    def __init__(self, api: str, repository: str, token: Secret) -> None:
        self._base = f"{api.rstrip('/')}/repos/{repository}"
        self._token = token

    def comments(self, number: int) -> list[dict[str, Any]]:
        """Of a pull request, all pages."""
        found: list[dict[str, Any]] = []
        for page in range(1, _MAX_PAGES + 1):
            path = f"/issues/{number}/comments?per_page={_PAGE}&page={page}"
            batch = self._ask("GET", path, None)
            found.extend(batch)
            if len(batch) < _PAGE:
                break
        return found

    def create(self, number: int, body: str) -> None:
        self._ask("POST", f"/issues/{number}/comments", {"body": body})

    def update(self, comment: int, body: str) -> None:
        self._ask("PATCH", f"/issues/comments/{comment}", {"body": body})

    def _ask(self, method: str, path: str, body: dict[str, str] | None) -> Any:  # noqa: ANN401
        request = urllib.request.Request(  # noqa: S310 -- the API's own address
            self._base + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={
                "Authorization": f"Bearer {self._token.reveal()}",
                "Accept": "application/vnd.github+json",
                "Content-Type": "application/json",
                "X-GitHub-Api-Version": "2022-11-28",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            error.close()
            message = f"GitHub answered {error.code} to {method} {path.partition('?')[0]}"
            raise GitHubRefusedError(message) from None
        except (OSError, ValueError) as error:
            message = f"GitHub could not be asked ({type(error).__name__})"
            raise GitHubRefusedError(message) from None
