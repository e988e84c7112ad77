from __future__ import annotations

from tunegate.wording import plural


def test_one_is_alone_and_thousands_are_grouped() -> None:
    assert [plural(n, "task") for n in (0, 1, 2, 3000)] == [
        "0 tasks",
        "1 task",
        "2 tasks",
        "3,000 tasks",
    ]
    assert plural(2, "entry", "entries") == "2 entries"
