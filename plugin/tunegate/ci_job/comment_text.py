"""The text of a comment: the report, and where to look further. Pure."""

from __future__ import annotations

import re

from tunegate.ci_hosts.protocol import Links

_ADDRESS = re.compile(r"https?://[^\s()<>\"'`|\\]+")


def with_links(markdown: str, links: Links) -> str:
    """The report with one more line, without addresses that could be more than an address."""
    named = (("This run", links.run), ("whole report", links.report))
    shown = [f"[{name}]({address})" for name, address in named if _ADDRESS.fullmatch(address)]
    return f"{markdown.rstrip()}\n\n{' · '.join(shown)}\n" if shown else markdown
