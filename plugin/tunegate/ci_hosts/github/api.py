"""The API that a job may ask, and who its token is: the job's own, a person's or an app's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tunegate.ci_hosts.github.comment import JOBS_OWN
from tunegate.ci_hosts.protocol import HostRefusedError
from tunegate.ci_hosts.rest_api import RestApi, RestRefusedError
from tunegate.ci_hosts.secret import Secret

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
