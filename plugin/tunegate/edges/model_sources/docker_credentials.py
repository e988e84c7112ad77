"""Credentials of a registry, as docker, podman and ORAS keep them. No helper program is started."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from tunegate.errors import ConfigError

_MAX_BYTES = 2**20


class RegistryLogin(msgspec.Struct, frozen=True):
    """A user and a password, as the header of `Authorization: Basic`."""

    basic: str = ""


class _Entry(msgspec.Struct):
    auth: str = ""
    username: str = ""
    password: str = ""


class _File(msgspec.Struct, rename="camel"):
    auths: dict[str, _Entry] = {}
    cred_helpers: dict[str, str] = {}
    creds_store: str = ""


def registry_login(host: str, variables: Mapping[str, str] = os.environ) -> RegistryLogin:
    """The login of the first file that has one for the host; an empty one where none has. Raises
    ConfigError where only a helper program has it."""
    helpers = []
    for path in _files(variables):
        found = _read(path)
        names = (host, f"https://{host}", f"https://{host}/v1/", f"http://{host}")
        entry = next((found.auths[name] for name in names if name in found.auths), None)
        if entry is not None and (basic := _basic(entry)):
            return RegistryLogin(basic)
        helpers += [path] * (host in found.cred_helpers or bool(entry and found.creds_store))
    if helpers:
        message = (
            f"{host}: {helpers[0]} leaves its login to a helper program, which is not started. "
            f"Log in with DOCKER_CONFIG set to a directory of its own."
        )
        raise ConfigError(message)
    return RegistryLogin()


def _files(variables: Mapping[str, str]) -> Iterator[Path]:
    if variables.get("REGISTRY_AUTH_FILE"):
        yield Path(variables["REGISTRY_AUTH_FILE"])
    home = Path(variables.get("HOME", "/nonexistent"))
    yield Path(variables.get("DOCKER_CONFIG") or home / ".docker") / "config.json"
    if variables.get("XDG_RUNTIME_DIR"):
        yield Path(variables["XDG_RUNTIME_DIR"]) / "containers" / "auth.json"


def _read(path: Path) -> _File:
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_MAX_BYTES), type=_File)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return _File()


def _basic(entry: _Entry) -> str:
    if entry.username:
        return base64.b64encode(f"{entry.username}:{entry.password}".encode()).decode()
    try:
        pair = base64.b64decode(entry.auth, validate=True)
    except (binascii.Error, ValueError):
        return ""
    return base64.b64encode(pair).decode() if b":" in pair else ""
