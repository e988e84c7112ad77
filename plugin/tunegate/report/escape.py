"""Makes names and messages from pull requests harmless for Markdown, terminals and XML.

Whoever opens a pull request chooses the names of models and operators. They must not open a tag,
break a table, mention a person, hide a command in a terminal or reverse a line.
"""

import json
import re
import unicodedata

from tunegate.redaction import redact

INVISIBLE = {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}
PLAIN_CODE = re.compile(r"[\w ./:+=,;()@#%~^*\[\]{}?!'\"&$<>-]+")
SPECIAL = "&<>|\\`$[]*~"
ZERO_WIDTH = "&#8203;"
_LONE_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
"""An underscore that is not inside a word may begin emphasis."""
_BLOCK_MARKER = re.compile(r"^(\d*)([-+.)](?=\s|$)|[-=:](?=[-=:\s]*$)|(?<!\d)/)")
"""Markers that begin a list, or turn the line above into a heading or table; a slash at the start
of a line is a command on some hosts."""
_PLAIN_IN_ELEMENT = frozenset(" ,.()/%+-=;_")
"""Characters that have no meaning in Markdown inside an element."""


def visible(text: str, limit: int = 300) -> str:
    """Returns one line in which every character is visible, without credentials in addresses, cut
    in the middle beyond the limit."""
    line = drawn_as_text(redact(" ".join(text.split()), ()))
    if len(line) <= limit:
        return line
    return f"{line[: limit // 2 - 1]}…{line[-(limit // 2) :]}"


def drawn_as_text(text: str) -> str:
    """Returns the text, with a code for every invisible character."""
    return "".join(
        f"\\u{ord(each):04x}" if unicodedata.category(each) in INVISIBLE else each for each in text
    )


def yaml_text(text: str) -> str:
    """Returns a YAML string on one line: a JSON one, but without surrogate pairs, which YAML reads
    as two characters, and without the line breaks that YAML alone knows."""
    return "".join(
        dump if dump.isprintable() else f"\\U{ord(dump):08x}"
        for dump in json.dumps(text, ensure_ascii=False)
    )


def code(name: str, limit: int = 120) -> str:
    """Returns a name as Markdown code, usable in a table.

    A code span if the name can stand in one; else a `<code>` element, in which every character that
    Markdown might interpret is a reference.
    """
    text = visible(name, limit)
    if PLAIN_CODE.fullmatch(text) and text == text.strip():
        return f"`{text}`"
    return code_element(name, limit)


def code_element(name: str, limit: int = 120) -> str:
    """Returns a name as code inside an HTML element, such as the title of a fold, where Markdown
    has no code span."""
    element = "".join(
        each if each.isalnum() or each in _PLAIN_IN_ELEMENT else _reference(each)
        for each in visible(name, limit)
    )
    linkless = re.sub(r"(www)\.", r"\1&#46;", element, flags=re.IGNORECASE)
    return f"<code>{_LONE_UNDERSCORE.sub(_reference('_'), linkless)}</code>"


def prose(text: str, limit: int = 600) -> str:
    """Returns a message as Markdown text: no structure, no link, no mention, no issue reference."""
    line = visible(text, limit)
    escaped = "".join(_reference(each) if each in SPECIAL else each for each in line)
    escaped = _LONE_UNDERSCORE.sub(_reference("_"), escaped)
    escaped = re.sub(r"(?<!&)([@#])", rf"\1{ZERO_WIDTH}", escaped)
    escaped = re.sub(
        r"((?<=http)://|(?<=https)://|(?<=ftp)://|www\.|GH-)",
        lambda match: _break_marker(match.group()),
        escaped,
    )
    return _BLOCK_MARKER.sub(lambda at: at[1] + _reference(at[2]), escaped)


def _break_marker(marker: str) -> str:
    return marker[0] + ZERO_WIDTH + marker[1:]


def _reference(character: str) -> str:
    return f"&#{ord(character)};"
