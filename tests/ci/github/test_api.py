from __future__ import annotations

import pytest

from tests.ci.github.github_server import GitHubServer, github_server
from tunegate.ci.github.api import job_token, login_of, opened_api

ENVIRONMENT = {"TUNEGATE_GITHUB_TOKEN": " ghs_secret\n"}


def login(server: GitHubServer, **more: str) -> str:
    environment = {**ENVIRONMENT, **server.variables, **more}
    token = job_token(environment)
    return login_of(environment, token, opened_api(environment, token))


@pytest.mark.parametrize("name", ["github-actions[bot]", "acme-gate[bot]", "octocat"])
def test_the_owner_of_a_token_is_asked_for(name: str) -> None:
    with github_server() as server:
        server.login = name
        assert login(server) == name
        assert server.tokens == {"Bearer ghs_secret"}


def test_a_server_without_the_other_api_is_asked_for_the_user() -> None:
    with github_server() as server:
        server.login = "octocat"
        assert login(server, GITHUB_GRAPHQL_URL="") == "octocat"
        server.always["POST /graphql"] = (403, {})
        assert login(server) == "octocat"


@pytest.mark.parametrize("said", [None, [], {"data": None}, {"data": {"viewer": {"login": "a b"}}}])
def test_where_neither_tells_it_is_the_jobs_own(said: object) -> None:
    with github_server() as server:
        server.always["POST /graphql"] = (200, said)
        assert login(server) == "github-actions[bot]"


def test_a_token_is_never_shown() -> None:
    assert "ghs_secret" not in repr(job_token(ENVIRONMENT))
