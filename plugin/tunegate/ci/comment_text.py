"""The text of a comment: the report, and where to look further. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tunegate.artifacts.changes import Revisions
from tunegate.ci.protocol import Links
from tunegate.report.escape import code

NO_CHANGE = """### ✅ No configured model changes any more

An earlier commit of this pull request changed one. What was reported for it is no longer true.
"""
_ADDRESS = re.compile(r"https?://[^\s()<>\"'`|\\]+")
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_SHOWN_ID = 7


def with_links(
    markdown: str, links: Links, revisions: Revisions | None = None, *, job: str = ""
) -> str:
    """The report with one more line below its first one, without addresses that could be more than
    an address. The name of the job is of its workflow, so it may be anything."""
    named = (("This run", links.run), ("whole report", links.report), *_commits(links, revisions))
    shown = [f"[{name}]({address})" for name, address in named if _ADDRESS.fullmatch(address)]
    if job:
        shown.insert(0, f"Job {code(job)}")
    first, _, rest = markdown.strip().partition("\n\n")
    parts = (first, " · ".join(shown), rest)
    return "\n\n".join(filter(None, parts)) + "\n" if shown and first else markdown


def _commits(links: Links, revisions: Revisions | None) -> Iterator[tuple[str, str]]:
    """Base and head, where both are commits: digests of content have no page."""
    if revisions is None or revisions.pins or not links.commit:
        return
    for side, commit in (("base", revisions.base or ""), ("head", revisions.head)):
        if _COMMIT.fullmatch(commit):
            yield f"{side} {commit[:_SHOWN_ID]}", f"{links.commit}{commit}"
