"""A step of Bitbucket Pipelines."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from urllib.parse import quote

from tunegate.ci.host_files import log_annotations, write_outputs
from tunegate.ci.protocol import (
    AskedRevisions,
    CiHost,
    HostRefusedError,
    JobEvent,
    JobReport,
    Links,
    Secret,
)
from tunegate_ci_hosts.bitbucket.comments import BitbucketComments
from tunegate_ci_hosts.bitbucket.event import bitbucket_event
from tunegate_ci_hosts.bitbucket.insight import publish_insight

_VARIABLE = "TUNEGATE_BITBUCKET_TOKEN"
_COMMIT = re.compile(r"[0-9a-f]{40}")


class BitbucketHost:
    """A step of Bitbucket Pipelines, by the variables that the runner gives it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    @staticmethod
    def is_here(environment: Mapping[str, str]) -> bool:
        """Returns whether this is a Bitbucket step: each has these variables."""
        return bool(
            environment.get("BITBUCKET_BUILD_NUMBER") and environment.get("BITBUCKET_COMMIT")
        )

    def event(self, asked: AskedRevisions) -> JobEvent:
        """Returns the step's event. Raises ConfigError."""
        return bitbucket_event(self._environment, asked)

    def links(self, out: Path) -> Links:
        """Returns the page of the pipeline, which has the artifacts."""
        repository, number = (
            self._value("BITBUCKET_REPO_FULL_NAME"),
            self._value("BITBUCKET_BUILD_NUMBER"),
        )
        if not (repository and number):
            return Links()
        place = f"https://bitbucket.org/{repository}"
        return Links(run=f"{place}/pipelines/results/{number}", commit=f"{place}/commits/")

    def literal_output(self) -> AbstractContextManager[None]:
        """Changes nothing: nobody reads commands from a log."""
        return nullcontext()

    def tell(self, report: JobReport) -> None:
        """Reports annotations in the log, outputs in a file for later steps, and the verdict beside
        the commit."""
        log_annotations(report.annotations)
        if report.directory is not None:
            write_outputs(report.directory, report.outputs)
        self._tell_commit(report)

    def comment(
        self, event: JobEvent, name: str, markdown: str, *, updates_only: bool = False
    ) -> None:
        """Writes a comment on the pull request."""
        token = self._token()
        if event.pull_request is None:
            raise HostRefusedError("this pipeline is of no pull request")
        if not token:
            raise HostRefusedError(f"{_VARIABLE} is not set")
        comments = BitbucketComments(self._repository(), event.pull_request, name, token)
        comments.publish(markdown, updates_only=updates_only)

    def _tell_commit(self, report: JobReport) -> None:
        """Publishes a Code Insights report if there is a token; a refusal is a line of the log."""
        token, commit = self._token(), self._value("BITBUCKET_COMMIT")
        if not token or not report.outputs.get("verdict"):
            return
        if not _COMMIT.fullmatch(commit):
            return
        path = f"/repositories/{self._repository()}/commit/{commit}"
        try:
            publish_insight(report, path, self.links(Path()).run, token)
        except HostRefusedError as error:
            sys.stderr.write(f"tunegate: no report beside the commit: {error}\n")

    def _token(self) -> Secret:
        return Secret(self._value(_VARIABLE).strip())

    def _repository(self) -> str:
        return quote(self._value("BITBUCKET_REPO_FULL_NAME"))

    def _value(self, name: str) -> str:
        return self._environment.get(name, "")


_: type[CiHost] = BitbucketHost
