"""A registry's credentials as docker, podman and ORAS store them: in a file, or with a helper
program that the file names."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from tunegate.artifacts.artifact_io import NOT_JSON
from tunegate.errors import ConfigError
from tunegate_deploy.model_sources.login_program import asked_helper

_Value = TypeVar("_Value")

DOCKER_HUB = "docker.io"
_HUB_LOGIN = "https://index.docker.io/v1/"
"""The name under which docker stores the login of its own hub."""
_MAX_BYTES = 2**20
_HELPER_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_KNOWS_NONE = b"credentials not found"
"""The beginning of a helper's output if it has no login for the server."""
_OF_A_TOKEN = "<token>"  # noqa: S105 -- the user whose password is an identity token
_SHOWN = 200


class RegistryLogin(msgspec.Struct, frozen=True):
    """A user and a password, as the `Authorization: Basic` header, or an identity token, which the
    registry's server exchanges."""

    basic: str = ""
    identity_token: str = ""


class _Entry(msgspec.Struct):
    auth: str = ""
    username: str = ""
    password: str = ""
    identitytoken: str = ""


class _File(msgspec.Struct, rename="camel"):
    auths: dict[str, _Entry] = {}
    cred_helpers: dict[str, str] = {}
    creds_store: str = ""


class _Printed(msgspec.Struct, rename="pascal"):
    username: str = ""
    secret: str = ""


def registry_login(host: str, variables: Mapping[str, str] = os.environ) -> RegistryLogin:
    """Returns the login of the first file that has one for the host, itself or by a helper program;
    an empty one if none has. Raises ConfigError for a helper that does not answer."""
    server, names = _names_of(host)
    for path in _files(variables):
        found = _read_file(path)
        helper = next(
            (found.cred_helpers[name] for name in names if name in found.cred_helpers), ""
        )
        if helper := helper or found.creds_store:
            said = _ask_helper(helper, server, path, variables)
            if said != RegistryLogin():
                return said
        entry = next((found.auths[name] for name in names if name in found.auths), None)
        if entry is not None and (login := _login(entry)) != RegistryLogin():
            return login
    return RegistryLogin()


def _first_known(names: Iterable[str], among: Mapping[str, _Value]) -> _Value | None:
    return next((among[name] for name in names if name in among), None)


def _names_of(host: str) -> tuple[str, tuple[str, ...]]:
    """Returns the name to ask a helper for, and the names that the host has in a file."""
    names = (host, f"https://{host}", f"https://{host}/v1/", f"http://{host}")
    return (_HUB_LOGIN, (_HUB_LOGIN, *names)) if host == DOCKER_HUB else (host, names)


def _files(variables: Mapping[str, str]) -> Iterator[Path]:
    if variables.get("REGISTRY_AUTH_FILE"):
        yield Path(variables["REGISTRY_AUTH_FILE"])
    home = Path(variables.get("HOME", "/nonexistent"))
    yield Path(variables.get("DOCKER_CONFIG") or home / ".docker") / "config.json"
    if variables.get("XDG_RUNTIME_DIR"):
        yield Path(variables["XDG_RUNTIME_DIR"]) / "containers" / "auth.json"


def _read_file(path: Path) -> _File:
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_MAX_BYTES), type=_File)
    except (OSError, *NOT_JSON):
        return _File()


def _ask_helper(name: str, server: str, path: Path, variables: Mapping[str, str]) -> RegistryLogin:
    """Asks a helper. Raises ConfigError if it does not answer."""
    program = f"docker-credential-{name}"
    if not _HELPER_NAME.fullmatch(name):
        message = f"{path}: {name[:_SHOWN]!r} is no name of a helper program."
        raise ConfigError(message)
    answer = asked_helper(program, server, variables)
    if answer.exit_code != 0 and answer.printed.strip().startswith(_KNOWS_NONE):
        return RegistryLogin()
    trouble = answer.trouble or (f"exited with {answer.exit_code}" if answer.exit_code else "")
    login = None if trouble else _parse_output(answer.printed)
    if login is None:
        message = (
            f"{program}: {trouble or 'printed no login'}. {path} leaves the login for {server} to "
            f"it. Try: echo {server} | {program} get"
        )
        raise ConfigError(message)
    return login


def _parse_output(body: bytes) -> RegistryLogin | None:
    try:
        printed = msgspec.json.decode(body, type=_Printed)
    except NOT_JSON:
        return None
    if printed.username == _OF_A_TOKEN:
        return RegistryLogin(identity_token=printed.secret)
    is_login = printed.username or printed.secret
    return RegistryLogin(_pair(printed.username, printed.secret) if is_login else "")


def _login(entry: _Entry) -> RegistryLogin:
    if entry.identitytoken:
        return RegistryLogin(identity_token=entry.identitytoken)
    if entry.username:
        return RegistryLogin(_pair(entry.username, entry.password))
    try:
        pair = base64.b64decode(entry.auth, validate=True)
    except (binascii.Error, ValueError):
        return RegistryLogin()
    return RegistryLogin(base64.b64encode(pair).decode() if b":" in pair else "")


def _pair(user: str, password: str) -> str:
    return base64.b64encode(f"{user}:{password}".encode()).decode()
