"""Telling a CI what came out, with a directory for its files where there is one of ours."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path

import msgspec

from tunegate.ci_hosts.protocol import CiHost, JobReport
from tunegate.edges.output.directory import opened_output
from tunegate.edges.output.owned_directory import is_marked_here
from tunegate.edges.processes.agent_process import told_by_agent
from tunegate.errors import OutputError, OutputInUseError


def report_to_host(host: CiHost, report: JobReport, out: Path | None) -> None:
    """The files go to the directory of the results, if a command of ours has made it and no other
    run is in it: what ended a job may be that the directory is somebody else's. None for no
    files."""
    with ExitStack() as stack:
        directory = _entered(stack, out)
        try:
            command = host.tell(msgspec.structs.replace(report, directory=directory))
            problem = told_by_agent(command, os.environ) if command else ""
            if problem:
                sys.stderr.write(f"tunegate: the report is not shown beside the job: {problem}\n")
        except OutputError as error:
            sys.stderr.write(f"tunegate: {error}\n")
        except Exception as error:  # noqa: BLE001 -- whatever a host of others does
            sys.stderr.write(f"tunegate: the CI was not told ({type(error).__name__})\n")


def _entered(stack: ExitStack, out: Path | None) -> Path | None:
    if out is None or not is_marked_here(out):
        return None
    try:
        return stack.enter_context(opened_output(out, "ci")).path
    except (OutputError, OutputInUseError):
        return None
