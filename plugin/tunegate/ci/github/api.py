"""The API that a job may ask, and who its token is: the job's own, a person's or an app's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tunegate.ci.comments import KeptComment, report_marker
from tunegate.ci.http import RestApi, RestRefusedError
from tunegate.ci.protocol import HostRefusedError, Secret
from tunegate.report.fitted_markdown import fitted_text

_PUBLIC = "https://api.github.com"
_LOGIN = re.compile(r"[\w.-]{1,100}(\[bot\])?", re.ASCII)
_WHO = {"query": "query { viewer { login } }"}


def job_token(environment: Mapping[str, str]) -> Secret:
    return Secret(environment.get("TUNEGATE_GITHUB_TOKEN", "").strip())


def opened_api(
    environment: Mapping[str, str], token: Secret, *, limit_seconds: float = 60.0
) -> RestApi:
    """The address of the server that the job is of, a company's own for one. Raises
    HostRefusedError."""
    address = environment.get("GITHUB_API_URL") or _PUBLIC
    return RestApi("GitHub", address, _headers(token), limit_seconds=limit_seconds)


def login_of(environment: Mapping[str, str], token: Secret, api: RestApi) -> str:
    """Returns the login that comments with this token.

    An installation token may not ask for its user, and is told its app by the other API. Where
    neither answers it is taken for the job's own. Raises HostRefusedError where the server does
    not answer at all.
    """
    return _viewer(environment, token) or _user(api) or JOBS_OWN


def _viewer(environment: Mapping[str, str], token: Secret) -> str:
    address = environment.get("GITHUB_GRAPHQL_URL", "")
    try:
        api = RestApi("GitHub", address, _headers(token), limit_seconds=20)
        answer = api.ask("POST", "", _WHO, is_repeatable=True)
    except HostRefusedError:
        return ""
    return _login(_inside(_inside(answer, "data"), "viewer"))


def _user(api: RestApi) -> str:
    try:
        return _login(api.ask("GET", "/user"))
    except RestRefusedError as error:
        if error.status in {401, 403, 404}:
            return ""
        raise


def _login(user: object) -> str:
    login = _inside(user, "login")
    return login if isinstance(login, str) and _LOGIN.fullmatch(login) else ""


def _inside(answer: object, name: str) -> Any:  # noqa: ANN401 -- JSON
    return answer.get(name) if isinstance(answer, dict) else None


def _headers(token: Secret) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {token.reveal()}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }


# The comments of one pull request, and whose they are.

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
