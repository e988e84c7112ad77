"""The CI that a command is a job of, which its command line may leave open."""

from __future__ import annotations

from collections.abc import Mapping

from tunegate.ci_hosts.protocol import CiHost
from tunegate.ci_hosts.registry import is_in_ci, opened_host
from tunegate.ci_hosts.untold_host import UntoldHost


def command_host(
    name: str, environment: Mapping[str, str], *, is_named: bool, is_json: bool
) -> CiHost | None:
    """The host of this name. Where the command line names none it is that of the CI that this is a
    job of, and None outside of all CIs; what is printed for a program then stays as it is. Raises
    as `opened_host` does."""
    if not is_named and not is_in_ci(environment):
        return None
    host = opened_host(name, environment)
    return UntoldHost(host) if is_json and not is_named else host
