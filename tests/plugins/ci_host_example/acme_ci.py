"""Acme CI, as tunegate sees it: changes with a target branch, and builds of branches."""

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from tunegate.ci.comments import report_marker
from tunegate.ci.host_files import log_line, write_host_json
from tunegate.ci.http import RestApi
from tunegate.ci.protocol import (
    AskedRevisions,
    CiHost,
    HostRefusedError,
    JobEvent,
    JobReport,
    Links,
    MergeBase,
    Usual,
)
from tunegate.errors import ConfigError


class AcmeHost:
    """A job of Acme CI, by its variables."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    @staticmethod
    def is_here(environment: Mapping[str, str]) -> bool:
        """Acme sets this in every job."""
        return environment.get("ACME") == "1"

    def event(self, asked: AskedRevisions) -> JobEvent:
        """A change is compared with its target branch, a branch with the default one."""
        kind, head = self._value("ACME_KIND"), self._value("ACME_COMMIT")
        number = self._value("ACME_CHANGE")
        if asked.base and asked.head:
            return JobEvent(revisions=Usual())
        if kind == "branch":
            zone = "main" if self._value("ACME_BRANCH") == "main" else None
            return JobEvent(revisions=Usual(default_branch="main"), checked_out=head, zone=zone)
        if kind != "change" or not number.isdecimal():
            raise ConfigError(f'ACME_KIND: "{kind}" says no two commits. Name --base and --head.')
        return JobEvent(
            revisions=MergeBase(target=self._value("ACME_TARGET")),
            checked_out=head,
            zone=None if self._value("ACME_IS_FORK") == "1" else f"pr/acme/{number}",
            pull_request=int(number),
            tip=head,
        )

    def links(self, out: Path) -> Links:
        """The page of the job."""
        return Links(run=self._value("ACME_JOB_URL"))

    def literal_output(self) -> AbstractContextManager[None]:
        """Acme reads nothing out of a log."""
        return nullcontext()

    def tell(self, report: JobReport) -> None:
        """Reports annotations in the log, and outputs in a file that Acme reads."""
        for annotation in report.annotations:
            sys.stderr.write(f"{log_line(annotation)}\n")
        if report.directory is not None:
            write_host_json(report.directory, "acme.json", dict(report.outputs))

    def comment(
        self,
        event: JobEvent,
        name: str,
        markdown: str,
        *,
        updates_only: bool = False,
    ) -> None:
        """Acme keeps one comment for each key."""
        token = self._value("ACME_TOKEN")
        if not token or event.pull_request is None:
            raise HostRefusedError("ACME_TOKEN is not set, or this is no change")
        api = RestApi("Acme", self._value("ACME_API"), {"Authorization": f"Bearer {token}"})
        comment = {"key": report_marker(name), "text": markdown}
        place = f"/changes/{event.pull_request}/comment"
        if not updates_only or api.ask("GET", place) is not None:
            api.ask("PUT", place, comment)

    def _value(self, name: str) -> str:
        return self._environment.get(name, "")


_: type[CiHost] = AcmeHost
