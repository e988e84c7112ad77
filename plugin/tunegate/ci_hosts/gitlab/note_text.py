"""A report as the text of a note: nothing in it does what GitLab would do with it.

A line that begins with a slash is a command, `!7` and `&7` are written on what they name, `%{x}` is
replaced. The report's own escapes stop tags and links; what is left is stopped here.
"""

from __future__ import annotations

import re

_ZERO_WIDTH = "&#8203;"
_COMMAND = re.compile(r"^([^\S\n]*)/", re.MULTILINE)
_KEPT = r"`[^`\n]*`|<code>(?:(?!</?code>).)*</code>|\]\(https?://[^\s()]*\)|<[^<>]*>"
"""The parts of a text that are left alone: code, addresses of links, tags. Each ends at the latest
where another one begins, so that no text takes longer than its length."""
_ENTITY_MARK = r"&\#(?:33|35|36|37|38|64|91|94|126);"
_MARK = r"[!%^#@~$&]"
"""Those that begin a reference, as they are or as character references: these are read first."""
_WORD = r"(?=[\w\"{]|&\#95;)"
_TRACKER = r"\b[A-Z][A-Z0-9_]+-(?=\d)"
_FOUND = re.compile(
    rf"(?P<stopped>{_ENTITY_MARK}{_WORD})|{_KEPT}|&\#?\w+;"
    rf"|(?P<mark>{_MARK}{_WORD}|{_TRACKER})",
)


def note_text(markdown: str) -> str:
    """The same text for a reader, without commands, mentions and references."""
    return _COMMAND.sub(r"\1&#47;", _FOUND.sub(_stopped, markdown))


def _stopped(found: re.Match[str]) -> str:
    is_mark = found["stopped"] or found["mark"]
    return found.group() + _ZERO_WIDTH if is_mark else found.group()
