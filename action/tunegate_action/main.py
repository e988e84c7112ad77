"""The action: its inputs as a job, which the plugin does with GitHub as the CI."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tunegate.ci_hosts.registry import opened_host
from tunegate.ci_job.flow import run_job, stopped
from tunegate.cli.main import carried_out
from tunegate.errors import ConfigError
from tunegate_action.inputs import read_request


def main(environment: Mapping[str, str]) -> int:
    """The exit code of tunegate."""
    host = opened_host("github", environment)
    try:
        request = read_request(environment)
    except ConfigError as error:
        ended = (error.exit_code, str(error), error.about, error.others)
        return stopped(host, environment, Path(), ended)
    return run_job(host, environment, request, carried_out)
