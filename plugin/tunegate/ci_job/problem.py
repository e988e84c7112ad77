"""What ended a run without a verdict, as an annotation and a page. Pure.

The text may quote a file of the pull request, and must show no secret.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

import msgspec

from tunegate.ci_hosts.protocol import Annotation
from tunegate.ci_job.config_place import ConfigPlace

_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|_KEY", re.IGNORECASE)
_MIN_SECRET = 6
_IN_ADDRESS = re.compile(r"(?<=:/)(/?)[^/@\s]+@")
"""A path that was made of an address has one slash."""
_MEANINGS = {
    2: "what was asked for cannot be used",
    3: "inconclusive",
    4: "this machine, or what it depends on, cannot do it",
    5: "there is nothing to compare with",
    70: "a bug of tunegate",
    130: "cancelled",
}


class Problem(msgspec.Struct, frozen=True):
    """One line, the exit code that it ends with, and the place that it is about, if there is one."""

    text: str
    exit_code: int
    place: ConfigPlace | None = None

    def annotation(self) -> Annotation:
        file, line = self.place or ("", 0)
        return Annotation(level="error", title="tunegate", text=self.text, file=file, line=line)

    def markdown(self) -> str:
        """Nothing in it is markup: whatever is quoted stays text."""
        meaning = _MEANINGS.get(self.exit_code, "no verdict")
        shown = html.escape(self.text).replace("\n", " ")
        return f"**tunegate: no verdict** (exit code {self.exit_code}: {meaning})\n\n<pre>{shown}</pre>\n"


def problem(
    text: str, exit_code: int, environment: Mapping[str, str], place: ConfigPlace | None = None
) -> Problem:
    """Without the value of any variable that is named like a secret, and without what stands before
    the host of an address."""
    secrets = {
        value
        for name, value in environment.items()
        if _SECRET_NAME.search(name) and len(value) >= _MIN_SECRET
    }
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return Problem(_IN_ADDRESS.sub(r"\1***@", text), exit_code, place)
