"""A verdict that a fork's own run wrote: hostile bytes, of which only what is checked here is
used."""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from tunegate import artifact_io
from tunegate.artifacts.verdicts import Finding, Verdict
from tunegate.errors import ArtifactError
from tunegate.regular_files import opened_inside

NAME = "verdict.json"
MAX_BYTES = 2**20
_MAX_FINDINGS = 1000
_MAX_NAME = 1000
_MAX_MS = 1e7
_MAX_PERCENT = 1e6
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def fork_verdict(directory: Path) -> Verdict | None:
    """The verdict in a directory that an artifact was unpacked to; None where there is none. Raises
    ArtifactError, whose text quotes nothing of the file."""
    body = _body(directory)
    if body is None:
        return None
    try:
        verdict = artifact_io.decoded(body, Verdict)
    except (ValueError, RecursionError):
        raise _refused("it is no verdict") from None
    problem = next(_problems(verdict), "")
    if problem:
        raise _refused(problem)
    return verdict


def _body(directory: Path) -> bytes | None:
    try:
        is_directory = stat.S_ISDIR(os.lstat(directory).st_mode)
    except FileNotFoundError:
        return None
    if not is_directory:
        raise _refused("it is in no directory of its own")
    if not os.path.lexists(directory / NAME):
        return None
    file = opened_inside(directory, NAME)
    if file is None:
        raise _refused("it is no plain file")
    with file:
        body = file.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        raise _refused(f"it has more than {MAX_BYTES} bytes")
    return body


def _problems(verdict: Verdict) -> Iterator[str]:
    if len(verdict.findings) > _MAX_FINDINGS:
        yield f"it has more than {_MAX_FINDINGS} findings"
    if not _COMMIT.fullmatch(verdict.revisions.head):
        yield "its head is no commit"
    if not 0 <= verdict.margin_percent <= _MAX_PERCENT:
        yield "its margin is no margin"
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
    if not all(math.isfinite(each) and abs(each) <= _MAX_PERCENT for each in numbers):
        yield "a change in it cannot be"
    if not change.low <= change.center <= change.high:
        yield "an interval in it is none"


def _refused(why: str) -> ArtifactError:
    message = f"{NAME} of the fork's run: {why}. Nothing of it is shown; look at the run itself."
    return ArtifactError(message)
