from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from deploy_tests.scripted_web import scripted_web, send
from tunegate.errors import ConfigError, EnvironmentUnfitError
from tunegate_deploy.model_sources.registry_challenge import authorization

PAIR = "Y2k6c2VjcmV0"
SHOWN = "oci://ghcr.io/acme/asr:live"


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The login of the host, which is a password."""
    found = {"auth": PAIR}
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    keep(tmp_path, found)
    return found


def keep(tmp_path: Path, entry: dict[str, str]) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"auths": {"ghcr.io": entry}}))


def test_a_password_goes_into_the_header(entry: dict[str, str]) -> None:
    assert authorization("ghcr.io", 'Basic realm="x"', SHOWN) == f"Basic {PAIR}"


def test_a_password_buys_a_token(entry: dict[str, str]) -> None:
    with scripted_web({"/token": b'{"token": "t0ken"}'}) as (url, asked):
        challenge = f'Bearer realm="{url}/token",service="r",scope="repository:acme/asr:pull"'
        assert authorization("ghcr.io", challenge, SHOWN) == "Bearer t0ken"
    assert asked.lines == ["GET /token?service=r&scope=repository%3Aacme%2Fasr%3Apull"]
    assert asked.headers["Authorization"] == f"Basic {PAIR}"


def test_an_identity_token_is_exchanged_in_a_body(tmp_path: Path, entry: dict[str, str]) -> None:
    """Azure's registry wants this. Its login has a user without a password beside the token."""
    keep(tmp_path, {"auth": "MDAwMDo=", "identitytoken": "i+d/t"})
    forms = []

    def give(request: BaseHTTPRequestHandler) -> None:
        forms.append(parse_qs(request.rfile.read(int(request.headers["Content-Length"])).decode()))
        send(request, 200, b'{"access_token": "t0ken"}')

    with scripted_web({"/oauth2/token": give}) as (url, asked):
        challenge = f'Bearer realm="{url}/oauth2/token",service="r",scope="repository:a:pull"'
        assert authorization("ghcr.io", challenge, SHOWN) == "Bearer t0ken"
    assert asked.lines == ["POST /oauth2/token"]
    assert "Authorization" not in asked.headers
    assert forms == [
        {
            "grant_type": ["refresh_token"],
            "client_id": ["tunegate"],
            "service": ["r"],
            "scope": ["repository:a:pull"],
            "refresh_token": ["i+d/t"],
        }
    ]


@pytest.mark.parametrize("challenge", ["", "Negotiate", 'Bearer service="r"', 'Basic realm="x"'])
def test_what_no_login_answers_asks_for_one(
    tmp_path: Path, entry: dict[str, str], challenge: str
) -> None:
    keep(tmp_path, {})
    with pytest.raises(ConfigError, match="wants a login"):
        authorization("ghcr.io", challenge, SHOWN)


def test_no_login_goes_over_a_network_as_it_is(entry: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="not encrypted"):
        authorization("ghcr.io", 'Bearer realm="http://example.com/token"', SHOWN)


def test_an_answer_without_a_token_is_said(entry: dict[str, str]) -> None:
    with (
        scripted_web({"/token": b"<html>"}) as (url, _),
        pytest.raises(EnvironmentUnfitError, match="gave no token"),
    ):
        authorization("ghcr.io", f'Bearer realm="{url}/token"', SHOWN)
