"""The report as an annotation of the build, made by a command of Buildkite's agent.

An annotation is found by its context: a repeated job replaces its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tunegate.ci.events import JobVariables
from tunegate.ci.protocol import AgentCommand

_STYLES = {"pass": "success", "fail": "error", "error": "error", "inconclusive": "warning"}
_MAX_BYTES = 900_000
"""Buildkite's limit is 1 MiB."""
_FORWARDED = re.compile(
    r"BUILDKITE_AGENT_(ACCESS_TOKEN|ENDPOINT|JOB_API_\w+)|BUILDKITE_(JOB|BUILD)_ID"
    r"|BUILDKITE_(NO_HTTP2|REQUEST_HEADER_\w+)|(?i:https?_proxy|no_proxy)|SSL_CERT_(FILE|DIR)"
)


def annotation_of(
    environment: Mapping[str, str], verdict: str, markdown: str, report: str
) -> AgentCommand:
    """Returns the agent's command. `report` is the path of the HTML report among the artifacts, ''
    if it is not there."""
    job = JobVariables(environment)
    context = f"tunegate/{job.text('BUILDKITE_STEP_ID')}".rstrip("/")
    style = _STYLES.get(verdict, "info")
    return AgentCommand(
        program="buildkite-agent",
        arguments=("annotate", "--context", context, "--style", style),
        text=_shorten(_add_link(markdown, report)),
        directory=job.text("BUILDKITE_BIN_PATH"),
        variables=tuple(name for name in environment if _FORWARDED.fullmatch(name)),
    )


def _add_link(markdown: str, report: str) -> str:
    """Adds a link to the artifact, whose address is its path; a path with other characters is left
    out."""
    if not re.fullmatch(r"[\w./-]+", report, re.ASCII):
        return markdown
    return f"{markdown.rstrip()}\n\n[Whole report](artifact://{report})\n"


def _shorten(text: str) -> str:
    body = text.encode()
    if len(body) <= _MAX_BYTES:
        return text
    note = "\n\n(cut: the whole report is among the artifacts)\n"
    return body[:_MAX_BYTES].decode(errors="ignore").rpartition("\n")[0] + note
