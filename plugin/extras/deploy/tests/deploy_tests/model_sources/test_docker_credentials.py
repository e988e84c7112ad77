from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.programs import shell_program

from tunegate.errors import ConfigError
from tunegate_deploy.model_sources.docker_credentials import RegistryLogin, registry_login

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


def helped(tmp_path: Path, content: object, script: str, host: str = "ghcr.io") -> RegistryLogin:
    """The login that the helper `some` gives."""
    shell_program(tmp_path / "bin" / "docker-credential-some", script)
    (tmp_path / "config.json").write_text(json.dumps(content))
    path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    return registry_login(host, {"DOCKER_CONFIG": str(tmp_path), "PATH": path})


ANSWERS = """test "$(cat)" = ghcr.io && echo '{"Username": "ci", "Secret": "secret"}'"""
FOR_ALL, FOR_ONE = {"credsStore": "some"}, {"credHelpers": {"ghcr.io": "some"}}
KNOWS_NONE = "echo credentials not found in native keychain; exit 1"


@pytest.mark.parametrize("content", [FOR_ALL, FOR_ONE, {**FOR_ONE, "credsStore": "absent"}])
def test_a_helper_program_is_asked_for_the_login(
    tmp_path: Path, content: dict[str, object]
) -> None:
    content = {**content, "auths": {"ghcr.io": {}}}
    assert helped(tmp_path, content, ANSWERS) == RegistryLogin(basic=PAIR)


def test_a_helper_of_another_host_is_not_asked(tmp_path: Path) -> None:
    assert helped(tmp_path, FOR_ONE, "exit 7", "other.io") == RegistryLogin()


def test_the_file_counts_where_the_helper_knows_none(tmp_path: Path) -> None:
    content = {**FOR_ALL, "auths": {"ghcr.io": {"auth": PAIR}}}
    assert helped(tmp_path, content, KNOWS_NONE) == RegistryLogin(basic=PAIR)
    assert helped(tmp_path, FOR_ALL, KNOWS_NONE) == RegistryLogin()
    assert helped(tmp_path, FOR_ALL, "echo {}") == RegistryLogin()


def test_an_identity_token_is_no_password(tmp_path: Path) -> None:
    token = RegistryLogin(identity_token="secret")
    answers = """echo '{"Username": "<token>", "Secret": "secret"}'"""
    assert helped(tmp_path, FOR_ALL, answers) == token
    entry = {"auth": "MDAwMDo=", "identitytoken": "secret"}
    assert helped(tmp_path, {"auths": {"ghcr.io": entry}}, "exit 7") == token


def test_docker_has_a_name_of_its_own_for_its_hub(tmp_path: Path) -> None:
    hub = "https://index.docker.io/v1/"
    answers = f"""test "$(cat)" = {hub} && echo '{{"Username": "ci", "Secret": "secret"}}'"""
    assert helped(tmp_path, FOR_ALL, answers, "docker.io") == RegistryLogin(basic=PAIR)
    content = {"auths": {hub: {"auth": PAIR}}}
    assert helped(tmp_path, content, "exit 7", "docker.io") == RegistryLogin(basic=PAIR)


@pytest.mark.parametrize(
    ("content", "script", "said"),
    [
        (FOR_ALL, "echo no session; exit 3", "docker-credential-some: exited with 3. "),
        (FOR_ALL, "echo secret", "docker-credential-some: printed no login. "),
        (FOR_ALL, "printf ''", "printed no login"),
        ({"credsStore": "absent"}, "", "docker-credential-absent: was not found on the PATH. "),
        ({"credsStore": "../some"}, "", "'../some' is no name of a helper program"),
        ({"credHelpers": {"ghcr.io": "a b"}}, "", "'a b' is no name of a helper program"),
    ],
)
def test_a_helper_that_does_not_answer_is_named(
    tmp_path: Path, content: object, script: str, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        helped(tmp_path, content, script)
    assert said in str(caught.value)
    assert str(tmp_path / "config.json") in str(caught.value)
    assert "secret" not in str(caught.value)
