"""The problem that ended a run without a verdict, as an annotation and a page. Pure.

The text may quote a file of the pull request, and must show no secret.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import msgspec

from tunegate.ci_hosts.protocol import Annotation
from tunegate.ci_job.config_place import ConfigPlace
from tunegate.redaction import redacted, secrets_of

_MEANINGS = {
    2: "what was asked for cannot be used",
    3: "inconclusive",
    4: "this machine, or what it depends on, cannot do it",
    5: "there is nothing to compare with",
    70: "a bug of tunegate",
    130: "cancelled",
}


class JobProblem(msgspec.Struct, frozen=True):
    """A problem in lines, its exit code, and the place that the first line is about, if there is
    one."""

    lines: tuple[str, ...]
    exit_code: int
    place: ConfigPlace | None = None

    def annotation(self) -> Annotation:
        file, line = self.place or ("", 0)
        text = "\n".join(self.lines)
        return Annotation(level="error", title="tunegate", text=text, file=file, line=line)

    def markdown(self) -> str:
        """Returns the page in Markdown, in which whatever is quoted stays text."""
        meaning = _MEANINGS.get(self.exit_code, "no verdict")
        shown = "\n".join(html.escape(line).replace("\n", " ") for line in self.lines)
        return (
            "**tunegate: no verdict** (exit code "
            f"{self.exit_code}: {meaning}){self._where()}\n\n<pre>{shown}</pre>\n"
        )

    def _where(self) -> str:
        return (
            f" in <code>{html.escape(self.place.file)}:{self.place.line}</code>"
            if self.place
            else ""
        )


def job_problem(
    lines: Sequence[str],
    exit_code: int,
    environment: Mapping[str, str],
    place: ConfigPlace | None = None,
) -> JobProblem:
    """The problem without the value of any variable that is named like a secret, and without
    what stands before the host of an address."""
    secrets = secrets_of(environment)
    return JobProblem(tuple(redacted(line, secrets) for line in lines), exit_code, place)
