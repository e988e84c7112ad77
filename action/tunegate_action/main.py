"""The action: its inputs as a job, which the plugin runs with GitHub as the CI."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tunegate.ci.github.host import GitHubHost
from tunegate.ci.job import report_stop, run_job
from tunegate.cli.main import execute
from tunegate.errors import ConfigError
from tunegate_action.debug_log import is_debug, show_debug
from tunegate_action.fork_report import comment_on_fork
from tunegate_action.inputs import read_fork_report, read_request
from tunegate_action.wider_environment import (
    WiderEnvironmentNeeded,
    execute_in_narrow,
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
        ending = (error.exit_code, str(error), error.about, error.others)
        return report_stop(host, environment, Path(), ending)
    if not is_narrow(environment):
        return run_job(host, environment, request, execute)
    try:
        return run_job(host, environment, request, execute_in_narrow)
    except WiderEnvironmentNeeded:
        run_in_wider(environment)


def safe_directory(environment: Mapping[str, str], checkout: Path) -> dict[str, str]:
    """Returns the variables by which git reads the checkout even if another user owns it, as in a
    job's container. The runner made it for this job; actions/checkout tells git so only while it
    runs itself. Before 2.38 git believes only a file of global settings, so it gets one that
    includes the job's own."""
    workspace = environment.get("GITHUB_WORKSPACE", "")
    if not workspace:
        return {}
    place = environment.get("RUNNER_TEMP")
    place = place if place and os.access(place, os.W_OK) else None
    file = Path(tempfile.mkdtemp(prefix="tunegate-git-", dir=place)) / "gitconfig"
    places = [
        f"[include]\n\tpath = {_quote_git_value(place)}\n"
        for place in _global_settings(environment)
    ]
    safe = (
        f"[safe]\n\tdirectory = {_quote_git_value(str((Path(workspace) / checkout).resolve()))}\n"
    )
    file.write_text("".join([*places, safe]))
    return {"GIT_CONFIG_GLOBAL": str(file)}


def _global_settings(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the files of global settings in git's order. It passes over those that are not
    there."""
    if "GIT_CONFIG_GLOBAL" in environment:
        own = environment["GIT_CONFIG_GLOBAL"]
        return (str(Path(own).resolve()),) if own else ()
    home = environment.get("HOME", "")
    own = environment.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    places = (f"{own}/git/config" if own else "", f"{home}/.gitconfig" if home else "")
    return tuple(filter(None, places))


def _quote_git_value(text: str) -> str:
    """Returns a value as git reads it from its settings."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
