from __future__ import annotations

import json
from pathlib import Path

import pytest

from tunegate.edges.model_sources.docker_credentials import registry_login
from tunegate.errors import ConfigError

PAIR = "Y2k6c2VjcmV0"


def login(tmp_path: Path, content: object) -> str:
    (tmp_path / "config.json").write_text(json.dumps(content))
    return registry_login("ghcr.io", {"DOCKER_CONFIG": str(tmp_path)}).basic


@pytest.mark.parametrize("name", ["ghcr.io", "https://ghcr.io", "https://ghcr.io/v1/"])
def test_a_login_is_found_by_the_names_of_its_host(tmp_path: Path, name: str) -> None:
    assert login(tmp_path, {"auths": {name: {"auth": PAIR}}}) == PAIR


def test_a_user_and_a_password_are_a_login(tmp_path: Path) -> None:
    entry = {"username": "ci", "password": "secret"}
    assert login(tmp_path, {"auths": {"ghcr.io": entry}}) == PAIR


@pytest.mark.parametrize("content", [{}, [], {"auths": {"other": {"auth": PAIR}}}, {"auths": 7},
                                     {"auths": {"ghcr.io": {"auth": "no base64!"}}}])  # fmt: skip
def test_a_file_without_a_login_is_none(tmp_path: Path, content: object) -> None:
    assert login(tmp_path, content) == ""


def test_no_helper_program_is_started(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="helper program"):
        login(tmp_path, {"credHelpers": {"ghcr.io": "gcloud"}})
    with pytest.raises(ConfigError, match="helper program"):
        login(tmp_path, {"auths": {"ghcr.io": {}}, "credsStore": "desktop"})
