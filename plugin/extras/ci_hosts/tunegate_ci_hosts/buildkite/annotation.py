"""The report as an annotation of the build, by the command of Buildkite's agent that makes one.

An annotation is found by its context: a job that is tried again replaces its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tunegate.ci.events import JobVariables
from tunegate.ci.protocol import AgentCommand

_STYLES = {"pass": "success", "fail": "error", "error": "error", "inconclusive": "warning"}
_MAX_BYTES = 900_000
"""Buildkite takes no more than 1 MiB."""
_FORWARDED = re.compile(
    r"BUILDKITE_AGENT_(ACCESS_TOKEN|ENDPOINT|JOB_API_\w+)|BUILDKITE_(JOB|BUILD)_ID"
    r"|BUILDKITE_(NO_HTTP2|REQUEST_HEADER_\w+)|(?i:https?_proxy|no_proxy)|SSL_CERT_(FILE|DIR)"
)


def annotation_of(
    environment: Mapping[str, str], verdict: str, markdown: str, report: str
) -> AgentCommand:
    """`report` is the path of the HTML report among the artifacts; '' where it is in none."""
    job = JobVariables(environment)
    context = f"tunegate/{job.text('BUILDKITE_STEP_ID')}".rstrip("/")
    style = _STYLES.get(verdict, "info")
    return AgentCommand(
        program="buildkite-agent",
        arguments=("annotate", "--context", context, "--style", style),
        text=_cut(_with_link(markdown, report)),
        directory=job.text("BUILDKITE_BIN_PATH"),
        variables=tuple(name for name in environment if _FORWARDED.fullmatch(name)),
    )


def _with_link(markdown: str, report: str) -> str:
    """The address of an artifact is its path; one with other characters is left out."""
    if not re.fullmatch(r"[\w./-]+", report, re.ASCII):
        return markdown
    return f"{markdown.rstrip()}\n\n[Whole report](artifact://{report})\n"


def _cut(text: str) -> str:
    body = text.encode()
    if len(body) <= _MAX_BYTES:
        return text
    note = "\n\n(cut: the whole report is among the artifacts)\n"
    return body[:_MAX_BYTES].decode(errors="ignore").rpartition("\n")[0] + note
