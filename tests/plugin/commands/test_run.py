from __future__ import annotations

import io

from tunegate.commands.run import warn_of
from tunegate.edges.progress.plain_log import PlainLog
from tunegate.policy.waivers import Waivers


def test_waivers_that_waive_nothing_are_told_first_on_one_line_each() -> None:
    told = io.StringIO()
    warn_of(Waivers(notes=("nothing is waived: on the base, …", "a \x1b[31mred")), PlainLog(told))
    first, second = told.getvalue().splitlines()
    assert "warning: nothing is waived: on the base, …" in first
    assert "\x1b" not in second
