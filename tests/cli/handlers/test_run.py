from __future__ import annotations

import io

import pytest

from tests.support.report_parts import change, changes
from tunegate.artifacts.changes import Revisions
from tunegate.cli.handlers.run import tell_no_base, warn_of
from tunegate.review.gate_rules import Waivers
from tunegate.system.progress.shown_progress import PlainLog


def test_waivers_that_waive_nothing_are_told_first_on_one_line_each() -> None:
    told = io.StringIO()
    warn_of(Waivers(notes=("nothing is waived: on the base, …", "a \x1b[31mred")), PlainLog(told))
    first, second = told.getvalue().splitlines()
    assert "warning: nothing is waived: on the base, …" in first
    assert "\x1b" not in second


@pytest.mark.parametrize(
    ("models", "counted"),
    [(1, "the model counts as new"), (3, "all 3 models count as new")],
)
def test_a_run_without_a_base_says_why_first(models: int, counted: str) -> None:
    told = io.StringIO()
    revisions = Revisions(base=None, head="a" * 40, reason="this is the first commit")
    new = [change(f"{n}.onnx", base=None) for n in range(models)]
    tell_no_base(changes(*new, revisions=revisions), PlainLog(told))
    assert told.getvalue().endswith(f"no base: this is the first commit, so {counted}\n")


def test_a_run_with_a_base_says_nothing_of_it() -> None:
    told = io.StringIO()
    tell_no_base(changes(change()), PlainLog(told))
    assert told.getvalue() == ""
