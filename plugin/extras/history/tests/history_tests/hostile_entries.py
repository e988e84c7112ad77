"""Entries as an attacker would write them: every text that a line may have."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st
from tests.support.history import entry

from tunegate.artifacts.history import HistoryEntry

PIECES = (
    *("</script>", "<!--", "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>'),
    *("=cmd|'/C calc'!A0", "+1", "-1", "@SUM(1)", "\t=1", " =1", "%0A", "{{7*7}}"),
    *("\r\n", '"', "\\", "\n", "\0", "'", "`", ",", ";", "}", "#", "é", "模"),
    *("\u202e", "\u2028", "\x1b[2J", "\ud7ff"),
)
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=4).map("".join)


def _entry(fields: dict[str, str], versions: dict[str, str]) -> HistoryEntry:
    return msgspec.structs.replace(entry(0), **fields, versions=versions)


hostile_entries = st.builds(
    _entry,
    st.fixed_dictionaries(
        dict.fromkeys(
            ("model", "target", "device", "runtime", "repository", "release", "commit", "reason"),
            texts,
        )
    ),
    st.dictionaries(texts, texts, max_size=2),
)
