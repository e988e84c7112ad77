"""Which CIs are known: those that are installed, ours among them, by the entry-point group
`tunegate.ci_hosts`. The value of each is a class that is a `CiHost`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from tunegate.ci_hosts.protocol import CiHost
from tunegate.errors import ConfigError, EnvironmentUnfitError
from tunegate_cache.installed_plugins import Plugin, PluginError, installed, load_plugin

HOST_GROUP = "tunegate.ci_hosts"
_AUTO = "auto"
NO_CI = "none"
"""The host of a process that is a job of no CI."""


def opened_host(name: str, environment: Mapping[str, str]) -> CiHost:
    """The host of this name; for `auto` the one that this process is a job of. Raises
    ConfigError, or EnvironmentUnfitError for a package that cannot be used."""
    known = installed(HOST_GROUP)
    if name == _AUTO:
        return _host_here(known, environment)
    if name not in known:
        raise ConfigError(f'"{name}" is no CI that is known. Known are {", ".join(known)}.')
    return _loaded(known[name])(environment)


def run_address(environment: Mapping[str, str]) -> str:
    """The page where people look at the job that this is; '' where it is none, or cannot be
    told."""
    try:
        return opened_host(_AUTO, environment).links(Path()).run
    except Exception:  # noqa: BLE001 -- whatever a host of others does, a device is not lost for it
        return ""


def _host_here(known: Mapping[str, Plugin], environment: Mapping[str, str]) -> CiHost:
    hosts = {name: _loaded(plugin) for name, plugin in known.items()}
    here = [name for name, host in hosts.items() if host.is_here(environment)]
    if len(here) > 1:
        message = f"this looks like a job of {' and of '.join(here)}. Name one of them with --ci."
        raise ConfigError(message)
    return hosts[next(iter(here), NO_CI)](environment)


def _loaded(plugin: Plugin) -> type[CiHost]:
    try:
        return cast("type[CiHost]", load_plugin(plugin))
    except PluginError as error:
        raise EnvironmentUnfitError(f"{error}. Install it again, or remove it.") from error
