"""The action: its inputs as a job, which the plugin does with GitHub as the CI."""

from __future__ import annotations

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
    """The exit code of tunegate."""
    host = GitHubHost(environment)
    if is_debug(environment):
        show_debug(environment)
    try:
        report = read_fork_report(environment)
        if report is not None:
            return comment_on_fork(host, environment, report.directory, report.comment)
        request = read_request(environment)
    except ConfigError as error:
        ended = (error.exit_code, str(error), error.about, error.others)
        return stopped(host, environment, Path(), ended)
    if not is_narrow(environment):
        return run_job(host, environment, request, carried_out)
    try:
        return run_job(host, environment, request, carried_out_in_narrow)
    except WiderEnvironmentNeeded:
        run_in_wider(environment)
