"""Bitbucket Pipelines, in a step of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from tunegate.ci_hosts.bitbucket.event import bitbucket_event
from tunegate.ci_hosts.host_files import dotenv, write_host_file
from tunegate.ci_hosts.log_line import log_line
from tunegate.ci_hosts.protocol import (
    AskedRevisions,
    CiHost,
    HostRefusedError,
    JobEvent,
    JobReport,
    Links,
)

_MAX_OUTPUT_BYTES = 4096


class BitbucketHost:
    """A step of Bitbucket Pipelines, by the variables that a runner gives to it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    @staticmethod
    def is_here(environment: Mapping[str, str]) -> bool:
        """Every step of Bitbucket's has these variables."""
        return bool(
            environment.get("BITBUCKET_BUILD_NUMBER") and environment.get("BITBUCKET_COMMIT")
        )

    def event(self, asked: AskedRevisions) -> JobEvent:
        """Raises ConfigError."""
        return bitbucket_event(self._environment, asked)

    def links(self, out: Path) -> Links:
        """The page of the pipeline has the artifacts."""
        repository, number = (
            self._value("BITBUCKET_REPO_FULL_NAME"),
            self._value("BITBUCKET_BUILD_NUMBER"),
        )
        if not (repository and number):
            return Links()
        return Links(run=f"https://bitbucket.org/{repository}/pipelines/results/{number}")

    def literal_output(self) -> AbstractContextManager[None]:
        """Nobody reads instructions out of a log."""
        return nullcontext()

    def tell(self, report: JobReport) -> None:
        """Tells annotations in the log, and outputs in a file for later steps."""
        for annotation in report.annotations:
            sys.stderr.write(f"{log_line(annotation)}\n")
        sys.stderr.flush()
        if report.directory is not None:
            outputs = dotenv(report.outputs, limit_bytes=_MAX_OUTPUT_BYTES)
            write_host_file(report.directory, "outputs.env", outputs)

    def comment(
        self, event: JobEvent, name: str, markdown: str, *, updates_only: bool = False
    ) -> None:
        """Raises HostRefusedError."""
        raise HostRefusedError("tunegate writes no comments on Bitbucket yet")

    def _value(self, name: str) -> str:
        return self._environment.get(name, "")


_: type[CiHost] = BitbucketHost
