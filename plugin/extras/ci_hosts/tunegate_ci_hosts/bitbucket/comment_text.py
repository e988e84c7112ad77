"""A report as Bitbucket's Markdown, which has no HTML: tags would be shown, and so would comments.

What the report has escaped stays text: character references become the characters, and none of them
can begin anything.
"""

from __future__ import annotations

import html
import re

_ZERO_WIDTH = "\u200b"
_PART = re.compile(
    r"(?P<code>`[^`\n]*`)|(?P<kept>\]\(https?://[^\s()]*\))"
    r"|<summary>(?P<summary>.*?)</summary>|<code>(?P<quoted>.*?)</code>"
    r"|(?P<line_break><br>)|(?P<tag></?[a-z]+>)|(?P<reference>&(?:\#\d+|\w+);)"
    r"|(?P<mark>[@#])(?=\w)"
)
_PLAIN = {"line_break": ", ", "tag": ""}
_ESCAPED = "\\`*_{}[]()>#+-.!|~"
"""Characters that a backslash turns into text."""


def comment_text(markdown: str) -> str:
    """Returns the same text for a reader, without tags, mentions and references."""
    return _PART.sub(_plain, markdown)


def bitbucket_marker(name: str) -> str:
    """Returns the first line of the report under this name: the definition of an unused link, which
    Markdown hides."""
    plain = "".join(c for c in name if c.isalnum() or c in "._-/")
    return f"[//]: # (tunegate:report {plain})"


def _plain(match: re.Match[str]) -> str:
    kind, text = match.lastgroup, match.group()
    match kind:
        case "summary":
            return f"**{comment_text(match['summary'])}**"
        case "quoted":
            return comment_text(match["quoted"])
        case "reference":
            return "".join(map(_literal, html.unescape(text)))
        case "mark":
            return text + _ZERO_WIDTH
        case _:
            return _PLAIN.get(kind or "", text)


def _literal(character: str) -> str:
    """Returns a character that begins nothing, whatever follows it."""
    if character == _ZERO_WIDTH or not character.isprintable():
        return _ZERO_WIDTH
    escaped = f"\\{character}" if character in _ESCAPED else character
    return escaped if character.isalnum() else escaped + _ZERO_WIDTH
