"""GitHub Actions, in a job of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tunegate.ci_hosts.finished_run import FinishedRun, FinishedRunHost
from tunegate.ci_hosts.github.api import job_token, login_of, opened_api
from tunegate.ci_hosts.github.check_run import CheckRun
from tunegate.ci_hosts.github.comment import Comments
from tunegate.ci_hosts.github.event import github_event
from tunegate.ci_hosts.github.finished_run import finished_run
from tunegate.ci_hosts.github.workflow import (
    MAX_ANNOTATIONS,
    append,
    command_of,
    commands_stopped,
    cut,
    output,
)
from tunegate.ci_hosts.protocol import AskedRevisions, CiHost, JobEvent, JobReport, Links
from tunegate.errors import ConfigError


class GitHubHost:
    """A job of GitHub Actions, by the variables and files that a runner gives to it. Commands go to
    standard output."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._check = CheckRun(environment, self.links(Path()).run)

    @staticmethod
    def is_here(environment: Mapping[str, str]) -> bool:
        """Every job of GitHub's has this variable."""
        return environment.get("GITHUB_ACTIONS") == "true"

    def event(self, asked: AskedRevisions) -> JobEvent:
        """Raises ConfigError."""
        return github_event(self._environment, self._payload(), asked)

    def links(self, out: Path) -> Links:
        """Files are kept by a later step: nobody knows their address yet, and the page of the run
        lists them. A job that keeps them elsewhere says so."""
        server, repository = self._value("GITHUB_SERVER_URL"), self._value("GITHUB_REPOSITORY")
        number = self._value("GITHUB_RUN_ID")
        if not (server and repository and number):
            return Links(report=self._value("TUNEGATE_REPORT_URL"))
        run = f"{server}/{repository}/actions/runs/{number}"
        report = self._value("TUNEGATE_REPORT_URL") or f"{run}#artifacts"
        return Links(run=run, report=report, commit=f"{server}/{repository}/commit/")

    def literal_output(self) -> AbstractContextManager[None]:
        """Names from a pull request may be printed meanwhile."""
        return commands_stopped(sys.stdout)

    def tell(self, report: JobReport) -> None:
        """Tells the report by workflow commands, by the runner's files for outputs and for the
        summary of the step, and by a check run."""
        for name, value in report.outputs.items():
            append(self._value("GITHUB_OUTPUT"), output(name, value))
        for annotation in report.annotations[:MAX_ANNOTATIONS]:
            sys.stdout.write(f"{command_of(annotation)}\n")
        sys.stdout.flush()
        if report.summary:
            append(self._value("GITHUB_STEP_SUMMARY"), cut(report.summary))
        if report.progress is not None:
            self._check.show(report, report.progress)

    def comment(
        self, event: JobEvent, name: str, markdown: str, *, updates_only: bool = False
    ) -> None:
        """Writes the comment. Without a token the API is not called: the report
        is in the summary of the step."""
        token = job_token(self._environment)
        if not token or event.pull_request is None:
            return
        api = opened_api(self._environment, token)
        author = login_of(self._environment, token, api)
        repository = self._value("GITHUB_REPOSITORY")
        comments = Comments(api, repository, event.pull_request, name, author)
        comments.publish(markdown, updates_only=updates_only)

    def finished_run(self) -> FinishedRun:
        """The run of a fork that has ended, by the event `workflow_run`."""
        token = job_token(self._environment)
        api = opened_api(self._environment, token) if token else None
        return finished_run(self._environment, self._payload(), api)

    def _payload(self) -> Mapping[str, Any]:
        """Raises ConfigError."""
        path = self._value("GITHUB_EVENT_PATH")
        try:
            payload = json.loads(Path(path).read_text("utf-8")) if path else {}
        except (OSError, ValueError, RecursionError) as error:
            message = f"GITHUB_EVENT_PATH: {path} cannot be read ({error})."
            raise ConfigError(message) from error
        if not isinstance(payload, dict):
            message = f"GITHUB_EVENT_PATH: {path} holds no event."
            raise ConfigError(message)
        return payload

    def _value(self, name: str) -> str:
        return self._environment.get(name, "")


_: type[CiHost] = GitHubHost
_finishing: type[FinishedRunHost] = GitHubHost
