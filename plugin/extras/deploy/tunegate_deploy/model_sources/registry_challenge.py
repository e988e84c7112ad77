"""Answers a registry that asks who we are: with the user's login, or a token that its own server
issues for it."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import msgspec

from tunegate.artifacts.artifact_io import NOT_JSON
from tunegate.errors import ConfigError, EnvironmentUnfitError
from tunegate_deploy.model_sources.docker_credentials import RegistryLogin, registry_login
from tunegate_deploy.model_sources.web import (
    WebRequest,
    require_success,
    require_web_address,
    web_answer,
)

_MAX_TOKEN_BYTES = 2**20
_PARAMETER = re.compile(r'(\w+)="([^"]*)"')
_CLIENT = "tunegate"


class _Token(msgspec.Struct):
    token: str = ""
    access_token: str = ""


def authorization(host: str, challenge: str, address: str) -> str:
    """Returns the header that answers a registry's challenge (`WWW-Authenticate`). Raises
    ConfigError if it requires a login that is missing, EnvironmentUnfitError for an answer without
    a token."""
    login = registry_login(host)
    kind, _, rest = challenge.partition(" ")
    if kind.lower() == "basic" and login.basic:
        return f"Basic {login.basic}"
    parameters = dict(_PARAMETER.findall(rest))
    if kind.lower() != "bearer" or "realm" not in parameters:
        message = f"{address}: the registry wants a login. Run: oras login {host}"
        raise ConfigError(message)
    realm = parameters.pop("realm")
    require_web_address(realm)
    wanted = {name: parameters[name] for name in ("service", "scope") if name in parameters}
    with web_answer(_token_request(realm, wanted, login)) as answer:
        require_success(answer, address)
        body = answer.body(_MAX_TOKEN_BYTES)
    try:
        token = msgspec.json.decode(body, type=_Token)
    except NOT_JSON:
        message = f"{address}: the registry gave no token. Try again."
        raise EnvironmentUnfitError(message) from None
    return f"Bearer {token.token or token.access_token}"


def _token_request(realm: str, query: dict[str, str], login: RegistryLogin) -> WebRequest:
    """Returns the token request; an identity token is an OAuth 2 refresh token, which is sent in a
    body."""
    if login.identity_token:
        form = {"grant_type": "refresh_token", "client_id": _CLIENT, **query}
        return WebRequest(
            url=realm,
            method="POST",
            body=urlencode({**form, "refresh_token": login.identity_token}).encode(),
            headers={"Content-Type": "application/x-www-form-urlencoded"},
        )
    headers = {"Authorization": f"Basic {login.basic}"} if login.basic else {}
    return WebRequest(url=f"{realm}?{urlencode(query)}", headers=headers)
