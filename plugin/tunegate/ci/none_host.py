"""The host without a CI: results for a job become files beside the report."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import msgspec

from tunegate.ci import protocol
from tunegate.ci.host_files import log_annotations, write_host_file, write_host_json

_ADDRESS = "BUILD_URL"


class NoCiHost:
    """The host of a person at a shell, and of an unknown CI."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    @staticmethod
    def is_here(environment: Mapping[str, str]) -> bool:
        """Returns False: it is chosen if no other host is."""
        return False

    def event(self, asked: protocol.AskedRevisions) -> protocol.JobEvent:
        """Returns the usual revisions, and the cache that the configuration names."""
        return protocol.JobEvent(revisions=protocol.Usual(), zone="")

    def links(self, out: Path) -> protocol.Links:
        """Returns the link in a variable that many CIs set."""
        return protocol.Links(run=self._environment.get(_ADDRESS, ""))

    def literal_output(self) -> AbstractContextManager[None]:
        """Changes nothing: nobody reads commands from the output."""
        return nullcontext()

    def tell(self, report: protocol.JobReport) -> None:
        """Reports annotations in the log, and outputs, annotations and the summary in files."""
        log_annotations(report.annotations)
        if report.directory is None:
            return
        write_host_json(report.directory, "outputs.json", dict(report.outputs))
        annotations = [msgspec.structs.asdict(annotation) for annotation in report.annotations]
        write_host_json(report.directory, "annotations.json", annotations)
        write_host_file(report.directory, "summary.md", report.summary)

    def comment(
        self, event: protocol.JobEvent, name: str, markdown: str, *, updates_only: bool = False
    ) -> None:
        """Does nothing: there is nothing to comment on."""
        raise protocol.HostRefusedError("no CI says which pull request this is")


_: type[protocol.CiHost] = NoCiHost
