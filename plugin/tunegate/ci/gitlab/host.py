"""GitLab CI, in a job of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from tunegate.ci.gitlab.comment import Notes
from tunegate.ci.gitlab.event import gitlab_event
from tunegate.ci.host_files import log_annotations, report_inside, write_host_json, write_outputs
from tunegate.ci.protocol import (
    AskedRevisions,
    CiHost,
    HostRefusedError,
    JobEvent,
    JobReport,
    Links,
    Secret,
)


class GitLabHost:
    """A job of GitLab CI, by the variables that a runner gives to it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    @staticmethod
    def is_here(environment: Mapping[str, str]) -> bool:
        """Every job of GitLab's has this variable."""
        return environment.get("GITLAB_CI") == "true"

    def event(self, asked: AskedRevisions) -> JobEvent:
        """Raises ConfigError."""
        return gitlab_event(self._environment, asked)

    def links(self, out: Path) -> Links:
        """The report is among the artifacts of the job, where the directory is in the project's."""
        job = self._value("CI_JOB_URL")
        report = report_inside(out, self._value("CI_PROJECT_DIR"))
        project = self._value("CI_PROJECT_URL")
        return Links(
            run=job,
            report=f"{job}/artifacts/file/{report}" if job and report else "",
            commit=f"{project}/-/commit/" if project else "",
        )

    def literal_output(self) -> AbstractContextManager[None]:
        """Sections of a log need control characters, which are never printed."""
        return nullcontext()

    def tell(self, report: JobReport) -> None:
        """Tells annotations in the log; outputs for `artifacts:reports:dotenv`, and links for
        `artifacts:reports:annotations`, in files."""
        log_annotations(report.annotations)
        if report.directory is None:
            return
        write_outputs(report.directory, report.outputs)
        address = self.links(report.directory).report if report.outputs.get("report") else ""
        link = {"external_link": {"label": "tunegate report", "url": address}}
        write_host_json(report.directory, "links.json", {"tunegate": [link] if address else []})

    def comment(
        self, event: JobEvent, name: str, markdown: str, *, updates_only: bool = False
    ) -> None:
        """A note on the merge request."""
        token = Secret(self._value("TUNEGATE_GITLAB_TOKEN").strip())
        project = self._value("CI_MERGE_REQUEST_PROJECT_ID")
        if event.pull_request is None:
            raise HostRefusedError("this pipeline is of no merge request")
        if not token:
            raise HostRefusedError("TUNEGATE_GITLAB_TOKEN is not set")
        if not project.isascii() or not project.isdigit():
            raise HostRefusedError("CI_MERGE_REQUEST_PROJECT_ID is no number")
        api = self._value("CI_API_V4_URL")
        notes = Notes(api, int(project), event.pull_request, name, token)
        notes.publish(markdown, updates_only=updates_only)

    def _value(self, name: str) -> str:
        return self._environment.get(name, "")


_: type[CiHost] = GitLabHost
