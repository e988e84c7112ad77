"""Workers on other machines: a cluster, found by the entry-point group `tunegate.workers`.

The name of the entry point is what `executor` says in the configuration, and its value a function
that opens the cluster for one target.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

from tunegate.config import TargetConfig
from tunegate.errors import EnvironmentUnfitError
from tunegate.known_extras import GROUPS
from tunegate.tune.workers import Executor
from tunegate_cache.format.records import DeviceFingerprint
from tunegate_cache.installed_plugins import PluginError, load_plugin, plugin_named


class Cluster(Executor, Protocol):
    """An executor whose devices are not those of this machine."""

    def device(self) -> DeviceFingerprint:
        """The device that records name. Raises EnvironmentUnfitError where no worker starts."""
        ...

    def close(self) -> None: ...


OpenCluster = Callable[[TargetConfig, str], Cluster]
"""Opens the cluster for a target; its workers run the module named."""


def open_cluster(name: str, target: TargetConfig, program: str) -> Cluster:
    """Raises EnvironmentUnfitError where it is not installed, or cannot be reached."""
    plugin = plugin_named(GROUPS["executor"], name)
    if plugin is None:
        raise EnvironmentUnfitError(f"executor: {name} is not installed.")
    try:
        opening = cast(OpenCluster, load_plugin(plugin))
    except PluginError as error:
        raise EnvironmentUnfitError(f"executor: {error}. Install it again.") from error
    return opening(target, program)
