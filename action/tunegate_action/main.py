"""The action: its inputs as a job, which the plugin runs with GitHub as the CI."""

import os
from collections.abc import Mapping
from pathlib import Path

from tunegate.ci.fork_report import comment_on_fork
from tunegate.ci.github.host import GitHubHost
from tunegate.ci.job import run_job, stopped
from tunegate.cli.main import carried_out
from tunegate.errors import ConfigError
from tunegate_action.debug_log import is_debug, show_debug
from tunegate_action.inputs import read_fork_report, read_request
from tunegate_action.wider_environment import (
    WiderEnvironmentNeeded,
    carried_out_in_narrow,
    is_narrow,
    run_in_wider,
)


def main(environment: Mapping[str, str]) -> int:
    """Returns tunegate's exit code."""
    host = GitHubHost(environment)
    if is_debug(environment):
        show_debug(environment)
    try:
        report = read_fork_report(environment)
        if report is not None:
            return comment_on_fork(host, environment, report.directory, report.comment)
        request = read_request(environment)
        os.environ.update(safe_directory(environment, request.repository))
    except ConfigError as error:
        ended = (error.exit_code, str(error), error.about, error.others)
        return stopped(host, environment, Path(), ended)
    if not is_narrow(environment):
        return run_job(host, environment, request, carried_out)
    try:
        return run_job(host, environment, request, carried_out_in_narrow)
    except WiderEnvironmentNeeded:
        run_in_wider(environment)


def safe_directory(environment: Mapping[str, str], checkout: Path) -> dict[str, str]:
    """Returns the variables by which git reads the checkout even if another user owns it, as in a
    job's container. The runner made it for this job; actions/checkout tells git so only while it
    runs itself."""
    workspace = environment.get("GITHUB_WORKSPACE", "")
    if not workspace:
        return {}
    count = environment.get("GIT_CONFIG_COUNT", "")
    number = int(count) if count.isascii() and count.isdigit() else 0
    return {
        "GIT_CONFIG_COUNT": f"{number + 1}",
        f"GIT_CONFIG_KEY_{number}": "safe.directory",
        f"GIT_CONFIG_VALUE_{number}": f"{(Path(workspace) / checkout).resolve()}",
    }
