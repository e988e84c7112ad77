"""Stage `comment`: a fork's run has ended, and its numbers are written on its pull request.

The job has the rights of the default branch. It checks nothing out, starts nothing and judges
nothing: its exit code says whether it could report.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tunegate.artifacts.verdicts import Verdict
from tunegate.ci_hosts.finished_run import FinishedRun, FinishedRunHost, NothingToReportError
from tunegate.ci_hosts.protocol import (
    Annotation,
    HostRefusedError,
    JobEvent,
    JobReport,
    Level,
)
from tunegate.ci_hosts.revision_choice import Usual
from tunegate.ci_job.comment_text import with_links
from tunegate.ci_job.files import report_to_host
from tunegate.ci_job.flow import stopped
from tunegate.ci_job.fork_report import render
from tunegate.ci_job.fork_verdict import fork_verdict
from tunegate.errors import PASS, UNFIT, TunegateError
from tunegate.redaction import redacted, secrets_of
from tunegate.settings import CommentWhen

UNVERIFIED = "unverified"
_NAME = "fork"
"""A comment of its own: it never replaces one that a run of this repository wrote."""


def comment_on_fork(
    host: FinishedRunHost, environment: Mapping[str, str], directory: Path, when: CommentWhen
) -> int:
    """The exit code. `directory` has the files of the fork's run."""
    try:
        run = host.finished_run()
        verdict = fork_verdict(directory)
        if verdict is None:
            return _said(host, environment, f"the run of {run.source} kept no verdict.json")
        return _commented(host, environment, run, verdict, when)
    except NothingToReportError as nothing:
        return _said(host, environment, str(nothing))
    except HostRefusedError as refused:
        return _said(host, environment, str(refused), "error", UNFIT)
    except TunegateError as error:
        return stopped(host, environment, Path(), (error.exit_code, str(error), None, ()))


def _commented(
    host: FinishedRunHost,
    environment: Mapping[str, str],
    run: FinishedRun,
    verdict: Verdict,
    when: CommentWhen,
) -> int:
    text = with_links(render(verdict, source=run.source, tip=run.tip), run.links)
    outputs = {"verdict": UNVERIFIED, "claimed": verdict.status}
    report_to_host(host, JobReport(outputs=outputs, summary=text), None)
    if when == "never":
        return PASS
    event = JobEvent(revisions=Usual(), pull_request=run.pull_request, tip=run.tip)
    is_quiet = when != "always" and not verdict.findings
    is_quiet = is_quiet or (when == "on-alert" and verdict.exit_code == PASS)
    host.comment(event, _NAME, text, updates_only=is_quiet)
    return PASS


def _said(
    host: FinishedRunHost,
    environment: Mapping[str, str],
    text: str,
    level: Level = "notice",
    exit_code: int = PASS,
) -> int:
    said = redacted(f"no comment: {text}", secrets_of(environment))
    annotation = Annotation(level=level, title="tunegate", text=said)
    report_to_host(host, JobReport(outputs={"verdict": ""}, annotations=[annotation]), None)
    return exit_code
