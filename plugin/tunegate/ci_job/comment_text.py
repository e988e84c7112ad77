"""The text of a comment: the report, and where to look further. Pure."""

from __future__ import annotations

import re

from tunegate.ci_hosts.protocol import Links

NO_CHANGE = """### ✅ No configured model changes any more

An earlier commit of this pull request changed one. What was reported for it is no longer true.
"""
_ADDRESS = re.compile(r"https?://[^\s()<>\"'`|\\]+")


def with_links(markdown: str, links: Links) -> str:
    """The report with one more line below its first one, without addresses that could be more than
    an address."""
    named = (("This run", links.run), ("whole report", links.report))
    shown = [f"[{name}]({address})" for name, address in named if _ADDRESS.fullmatch(address)]
    first, _, rest = markdown.strip().partition("\n\n")
    parts = (first, " · ".join(shown), rest)
    return "\n\n".join(filter(None, parts)) + "\n" if shown and first else markdown
