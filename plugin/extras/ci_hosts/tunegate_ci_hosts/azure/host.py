"""A job of Azure Pipelines."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import quote

from tunegate.ci.host_files import PREFIX, write_host_file
from tunegate.ci.protocol import (
    AskedRevisions,
    CiHost,
    HostRefusedError,
    JobEvent,
    JobReport,
    Links,
    Secret,
)
from tunegate_ci_hosts.azure.event import azure_event
from tunegate_ci_hosts.azure.logging_commands import (
    is_plain,
    issue_command,
    logging_commands_broken,
    summary_command,
    variable_command,
)
from tunegate_ci_hosts.azure.threads import Threads

_SUMMARY = "summary.md"
_AZURE_REPOS = "TfsGit"


class AzureHost:
    """A job of Azure Pipelines, by the variables that the agent gives it. Commands go to standard
    output."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    @staticmethod
    def is_here(environment: Mapping[str, str]) -> bool:
        """Returns whether this is an Azure job: each has this variable."""
        return environment.get("TF_BUILD", "").lower() == "true"

    def event(self, asked: AskedRevisions) -> JobEvent:
        """Returns the job's event. Raises ConfigError."""
        return azure_event(self._environment, asked)

    def links(self, out: Path) -> Links:
        """Returns the page of the run, which shows the artifacts that a later step publishes."""
        collection, project = self._value("SYSTEM_COLLECTIONURI"), self._value("SYSTEM_TEAMPROJECT")
        number = self._value("BUILD_BUILDID")
        if not (collection and project and number.isdecimal()):
            return Links()
        place = f"{collection.rstrip('/')}/{quote(project)}"
        return Links(run=f"{place}/_build/results?buildId={number}&view=results")

    def literal_output(self) -> AbstractContextManager[None]:
        """Keeps printed names of a pull request from being taken for commands."""
        return logging_commands_broken()

    def tell(self, report: JobReport) -> None:
        """Reports by logging commands, and by a file for the run's summary."""
        lines = [issue_command(each) for each in report.annotations]
        if report.directory is not None:
            outputs = report.outputs.items()
            lines += [variable_command(name, value) for name, value in outputs if is_plain(value)]
            if report.summary:
                write_host_file(report.directory, _SUMMARY, report.summary)
                page = Path.cwd().joinpath(report.directory, f"{PREFIX}{_SUMMARY}")
                lines.append(summary_command(page))
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()

    def comment(
        self, event: JobEvent, name: str, markdown: str, *, updates_only: bool = False
    ) -> None:
        """Writes a thread on the pull request. One on GitHub gets its comment there, by its own
        token."""
        token = Secret(self._value("SYSTEM_ACCESSTOKEN").strip())
        repository = self._value("BUILD_REPOSITORY_ID")
        if event.pull_request is None:
            raise HostRefusedError("this run is of no pull request")
        if self._value("BUILD_REPOSITORY_PROVIDER") != _AZURE_REPOS:
            raise HostRefusedError("the pull request is not of Azure Repos")
        if not token:
            raise HostRefusedError("SYSTEM_ACCESSTOKEN is not set")
        collection, project = self._value("SYSTEM_COLLECTIONURI"), self._value("SYSTEM_TEAMPROJECT")
        pull_request = (repository, event.pull_request)
        threads = Threads(collection, project, pull_request, name, token)
        threads.publish(markdown, updates_only=updates_only)

    def _value(self, name: str) -> str:
        return self._environment.get(name, "")


_: type[CiHost] = AzureHost
