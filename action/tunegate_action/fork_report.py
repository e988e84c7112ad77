"""Stage `comment`: writes the numbers of a fork's finished run on its pull request.

The job has the rights of the default branch. It checks nothing out, starts nothing and judges
nothing: its exit code says only whether it could report.
"""

import math
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from tunegate.artifacts import artifact_io
from tunegate.artifacts.verdicts import Finding, Verdict
from tunegate.ci import protocol
from tunegate.ci.comments import with_links
from tunegate.ci.job import report_stop
from tunegate.ci.job_results import report_to_host
from tunegate.errors import PASS, UNFIT, ArtifactError, TunegateError
from tunegate.redaction import redact, secrets_of
from tunegate.regular_files import opened_inside
from tunegate.report.escape import code
from tunegate.report.headline import counts, worst_first
from tunegate.report.markdown import Section, fit_sections, markdown_table
from tunegate.report.report_tables import models_table
from tunegate.settings import CommentWhen
from tunegate.system.git.fetch import is_commit_id
from tunegate.wording import plural

UNVERIFIED = "unverified"
_NAME = "fork"
"""A separate comment: it never replaces one that a run of this repository wrote."""


def comment_on_fork(
    host: protocol.FinishedRunHost,
    environment: Mapping[str, str],
    directory: Path,
    when: CommentWhen,
) -> int:
    """Comments, and returns the exit code. `directory` has the files of the fork's run."""
    try:
        run = host.finished_run()
        verdict = fork_verdict(directory)
        if verdict is None:
            return _report_no_comment(
                host, environment, f"the run of {run.source} kept no verdict.json"
            )
        return _comment(host, run, verdict, when)
    except protocol.NothingToReportError as nothing:
        return _report_no_comment(host, environment, str(nothing))
    except protocol.HostRefusedError as refused:
        return _report_no_comment(host, environment, str(refused), "error", UNFIT)
    except TunegateError as error:
        return report_stop(host, environment, Path(), (error.exit_code, str(error), None, ()))


def _comment(
    host: protocol.FinishedRunHost,
    run: protocol.FinishedRun,
    verdict: Verdict,
    when: CommentWhen,
) -> int:
    text = with_links(render(verdict, source=run.source, tip=run.tip), run.links)
    outputs = {"verdict": UNVERIFIED, "claimed": verdict.status}
    report_to_host(host, protocol.JobReport(outputs=outputs, summary=text), None)
    if when == "never":
        return PASS
    event = protocol.JobEvent(
        revisions=protocol.Usual(), pull_request=run.pull_request, tip=run.tip
    )
    is_quiet = when != "always" and not verdict.findings
    is_quiet = is_quiet or (when == "on-alert" and verdict.exit_code == PASS)
    host.comment(event, _NAME, text, updates_only=is_quiet)
    return PASS


def _report_no_comment(
    host: protocol.FinishedRunHost,
    environment: Mapping[str, str],
    text: str,
    level: protocol.Level = "notice",
    exit_code: int = PASS,
) -> int:
    line = redact(f"no comment: {text}", secrets_of(environment))
    annotation = protocol.Annotation(level=level, title="tunegate", text=line)
    report_to_host(
        host, protocol.JobReport(outputs={"verdict": ""}, annotations=[annotation]), None
    )
    return exit_code


# The report on a fork's own run, as Markdown: its numbers, and no sentence that it could write.

MAX_FORK_CHECKS = 50
_LIMIT = 60_000


def render(verdict: Verdict, *, source: str, tip: str) -> str:
    """Returns the table of models. Names of models and targets are the fork's words, shown as code;
    reasons, notes and advice are left out, and counts come from the table itself."""
    findings = worst_first(verdict)[:MAX_FORK_CHECKS]
    rest = len(verdict.findings) - len(findings)
    table = markdown_table(models_table(findings).without("Energy", "Loading")) if findings else ""
    more = f"\n\n… and {plural(rest, 'more check')}." if rest > 0 else ""
    sections = (
        Section(0, f"### Unverified, from a run of the fork: {counts(verdict)}"),
        Section(1, _warning(source, tip)),
        Section(2, table + more),
    )
    return fit_sections([section for section in sections if section.text], _LIMIT)


def _warning(source: str, tip: str) -> str:
    return (
        f"> ⚠️ These numbers come from a run of {code(source)} for commit {code(tip[:12])}. Whoever "
        "opened this pull request can have changed what was run and what it wrote. They decide "
        "nothing: a check that counts has to run with this repository's own rules."
    )


# A verdict that a fork's own run wrote: hostile bytes, of which only checked parts are used.

NAME = "verdict.json"
MAX_BYTES = 2**20
_MAX_FINDINGS = 1000
_MAX_NAME = 1000
_MAX_MS = 1e7
_MAX_PERCENT = 1e6


def fork_verdict(directory: Path) -> Verdict | None:
    """Returns the verdict in a directory that an artifact was unpacked to, None if there is none.
    Raises ArtifactError, whose text quotes nothing of the file."""
    body = _body(directory)
    if body is None:
        return None
    try:
        verdict = artifact_io.decode(body, Verdict)
    except (ValueError, RecursionError):
        raise _refusal("it is not a verdict") from None
    problem = next(_problems(verdict), "")
    if problem:
        raise _refusal(problem)
    return verdict


def _body(directory: Path) -> bytes | None:
    try:
        is_directory = stat.S_ISDIR(os.lstat(directory).st_mode)
    except FileNotFoundError:
        return None
    if not is_directory:
        raise _refusal("it is in no directory of its own")
    if not os.path.lexists(directory / NAME):
        return None
    file = opened_inside(directory, NAME)
    if file is None:
        raise _refusal("it is not a plain file")
    with file:
        body = file.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        raise _refusal(f"it has more than {MAX_BYTES} bytes")
    return body


def _problems(verdict: Verdict) -> Iterator[str]:
    if len(verdict.findings) > _MAX_FINDINGS:
        yield f"it has more than {_MAX_FINDINGS} findings"
    if not is_commit_id(verdict.revisions.head):
        yield "its head is not a commit"
    if not 0 <= verdict.margin_percent <= _MAX_PERCENT:
        yield "its margin is not valid"
    for finding in verdict.findings:
        yield from _problems_of(finding)


def _problems_of(finding: Finding) -> Iterator[str]:
    if max(len(finding.model), len(finding.target)) > _MAX_NAME:
        yield "a name in it is too long"
    times = (finding.base_ms, finding.head_ms, finding.reference_ms)
    if any(time is not None and not 0 <= time <= _MAX_MS for time in times):
        yield "a time in it cannot be"
    change = finding.change_percent
    if change is None:
        return
    numbers = (change.low, change.center, change.high)
    if not all(math.isfinite(number) and abs(number) <= _MAX_PERCENT for number in numbers):
        yield "a change in it cannot be"
    if not change.low <= change.center <= change.high:
        yield "an interval in it is none"


def _refusal(why: str) -> ArtifactError:
    message = f"{NAME} of the fork's run: {why}. Nothing of it is shown; look at the run itself."
    return ArtifactError(message)
