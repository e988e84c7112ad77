"""Servers that lie, stall and lead astray."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from tests.support.servers.moto_server import free_port
from tests.support.servers.own_authority import own_authority

from deploy_tests.scripted_web import redirect_to, scripted_web, send
from tunegate.errors import ConfigError, EnvironmentUnfitError, TunegateError
from tunegate_deploy.model_sources.web import (
    WebRequest,
    require_success,
    shown_url,
    web_answer,
)

KEY = {"Authorization": "Bearer secret"}


def body_of(url: str, *, most_bytes: int = 1000) -> bytes:
    with web_answer(WebRequest(url=url, headers=KEY)) as answer:
        require_success(answer, shown_url(url))
        return answer.body(most_bytes)


def test_a_redirect_on_the_same_host_keeps_the_credentials() -> None:
    with scripted_web({"/a": redirect_to("/b"), "/b": b"model"}) as (url, asked):
        assert body_of(f"{url}/a") == b"model"
        assert asked.headers["Authorization"] == "Bearer secret"


def test_a_redirect_to_another_host_loses_them() -> None:
    with (
        scripted_web({"/b": b"model"}) as (other, asked),
        scripted_web({"/a": redirect_to(f"{other}/b")}) as (url, _),
    ):
        assert body_of(f"{url}/a") == b"model"
        assert "Authorization" not in asked.headers


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("/a", EnvironmentUnfitError),  # without end
        ("http://169.254.169.254/latest/meta-data", ConfigError),
        ("https://169.254.169.254/latest/meta-data", ConfigError),
        ("http://example.com/", ConfigError),
        ("file:///etc/passwd", ConfigError),
        ("ftp://example.com/", ConfigError),
        ("https://user:secret@example.com/", ConfigError),
    ],
)
def test_a_redirect_leads_nowhere_else(target: str, kind: type[TunegateError]) -> None:
    with scripted_web({"/a": redirect_to(target)}) as (url, asked):
        with pytest.raises(kind) as caught:
            body_of(f"{url}/a")
        assert len(asked.lines) <= 6
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, ConfigError),
        (403, ConfigError),
        (404, ConfigError),
        (204, EnvironmentUnfitError),
        (206, EnvironmentUnfitError),
        (304, EnvironmentUnfitError),
        (500, EnvironmentUnfitError),
    ],
)
def test_a_refusal_is_told_from_trouble(
    status: int, kind: type[TunegateError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tunegate_deploy.model_sources.web._FIRST_PAUSE_SECONDS", 0.0)
    with scripted_web({"/a": lambda request: send(request, status)}) as (url, asked):
        with pytest.raises(kind, match=str(status)):
            body_of(f"{url}/a?token=hidden")
        assert len(asked.lines) == (3 if status == 500 else 1)


def test_a_body_that_is_shorter_than_it_says_is_no_answer() -> None:
    def cut(request: BaseHTTPRequestHandler) -> None:
        send(request, 200, b"half", {"Content-Length": "8", "Connection": "close"})
        request.close_connection = True

    with scripted_web({"/a": cut}) as (url, _), pytest.raises(EnvironmentUnfitError):
        body_of(f"{url}/a")


def test_a_body_that_is_longer_than_is_read_is_cut_off() -> None:
    with (
        scripted_web({"/a": bytes(2000)}) as (url, _),
        pytest.raises(EnvironmentUnfitError, match="more than 1,000 bytes"),
    ):
        body_of(f"{url}/a")


def test_nobody_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tunegate_deploy.model_sources.web._FIRST_PAUSE_SECONDS", 0.0)
    with pytest.raises(EnvironmentUnfitError, match="no whole answer"):
        body_of(f"http://127.0.0.1:{free_port()}/a")


def test_an_unknown_certificate_authority_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tunegate_deploy.model_sources.web._FIRST_PAUSE_SECONDS", 0.0)
    with (
        own_authority(tmp_path) as url,
        pytest.raises(EnvironmentUnfitError, match=r"not trusted \(self.*SSL_CERT_FILE"),
    ):
        body_of(f"{url}/a")


def test_an_answer_that_is_no_http_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tunegate_deploy.model_sources.web._FIRST_PAUSE_SECONDS", 0.0)

    def noise(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"\0\1\2 nonsense\r\n\r\n")
        request.close_connection = True

    with scripted_web({"/a": noise}) as (url, _), pytest.raises(EnvironmentUnfitError):
        body_of(f"{url}/a")
