"""A spreadsheet that opens the file computes nothing, and every cell is where it belongs."""

from __future__ import annotations

import csv
import io

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.report.hostile_entries import hostile_entries
from tests.support.golden import Golden
from tests.support.history import entry, history
from tunegate.artifacts.history import HistoryEntry
from tunegate.report.history_page import csv_lines


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_the_file_is_as_it_was_when_it_was_last_reviewed(golden: Golden) -> None:
    golden.check("history.csv", csv_lines(history()[-4:]).replace("\r\n", "\n"))


@settings(max_examples=40)
@given(st.lists(hostile_entries, max_size=4))
@example([entry(0, model="=cmd|'/C calc'!A0"), entry(0, device=" =1", release="\t@SUM(1)")])
def test_no_text_is_a_formula_and_no_line_breaks(entries: list[HistoryEntry]) -> None:
    text = csv_lines(entries)
    found = rows(text)
    assert len(found) == len(entries) == text.count("\r\n") - 1
    for row in found:
        assert None not in row
        for name in ("model", "target", "device", "runtime", "repository", "release", "versions"):
            assert row[name].strip()[:1] not in set("=+-@|%\t\r\n")
            assert not set("\x00\x1b\u202e") & set(row[name])


def test_numbers_stay_numbers() -> None:
    (row,) = rows(csv_lines([entry(3, change=43)]))
    assert (float(row["head_ms"]), float(row["change_low_percent"])) == (8.0, -0.4)
    assert (row["change"], row["usd"], row["tasks"]) == ("43", "0.02", "10")


def test_what_is_unknown_is_empty() -> None:
    (row,) = rows(csv_lines([entry(3, head_ms=None, change_percent=None, change=None, cost=None)]))
    unknown = ("head_ms", "change_percent", "change", "usd", "seconds")
    assert {row[name] for name in unknown} == {""}
