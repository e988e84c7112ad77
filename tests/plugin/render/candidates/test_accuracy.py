from __future__ import annotations

import msgspec

from tests.plugin.render.candidates.budgeted import (
    AFTER,
    BEFORE,
    FLOAT32,
    LIMITS,
    make_error,
    make_side,
    report_with,
)
from tests.support.golden import Golden
from tests.support.html_outline import outline
from tests.support.reports import make_report
from tunegate.artifacts.error_estimates import SaturatedOutput, ShippedErrors, SideError
from tunegate.render import html
from tunegate.render.candidates.accuracy import accuracy_table
from tunegate.render.comment import comment
from tunegate.render.tables.table import Identifier

BOTH = ShippedErrors(base=BEFORE, head=AFTER, limits=LIMITS)


def rows(base: SideError | None, head: SideError | None) -> list[list[object]]:
    report = report_with(ShippedErrors(base=base, head=head, limits=LIMITS))
    table = accuracy_table(report.verdict.findings).without("Model", "Target")
    return [list(cells) for cells in table.cells()]


def test_the_comment_the_page_and_the_verdict_tell_what_ships_with_its_interval(
    golden: Golden,
) -> None:
    report = report_with(BOTH)
    golden.check("budgeted.md", comment.render(report))
    golden.check("budgeted.html.txt", "\n".join(outline(html.render(report)).lines) + "\n")
    verdict = msgspec.json.format(msgspec.json.encode(report.verdict), indent=2)
    golden.check("budgeted.verdict.json", verdict.decode() + "\n")


def test_each_part_of_the_budget_has_a_row_with_both_sides() -> None:
    told = [cells[:5] for cells in rows(BEFORE, AFTER)]
    assert told == [
        [
            "max-error 2%",
            "OpenVINO (bf16): 0.8% (0.7 to 1.1)",
            "OpenVINO (bf16): 1.6% (1.3 to 1.9)",
            "128",
            Identifier("logits"),
        ],
        [
            "min-agreement 98%",
            "OpenVINO (bf16): 100% (98.1 to 100)",
            "OpenVINO (bf16): 99.2% (98 to 99.9)",
            "128",
            Identifier("logits"),
        ],
    ]


def test_float32_under_a_budget_is_told_with_the_budget() -> None:
    budget = "max-error 2%, min-agreement 98%"
    assert rows(FLOAT32, None) == [[budget, "TVM: float32", "–", "–", "–", "–"]]
    assert rows(FLOAT32, AFTER)[0][1] == "TVM: float32"


def test_outputs_that_tell_nothing_are_named() -> None:
    error = msgspec.structs.replace(make_error(0.8, 0.7, None), saturated=("mask", "flags"))
    (told,) = rows(None, make_side(error))
    assert (told[2], told[-1]) == (
        "OpenVINO (bf16): 0.8% (0.7 to ?)",
        Identifier("mask, flags"),
    )


def test_inputs_and_elements_that_tell_nothing_are_counted() -> None:
    heat = SaturatedOutput(output="heat", percent=97.3)
    error = msgspec.structs.replace(
        make_error(0.8, 0.7, 1.1), silent=12, saturated=("flags",), mostly_saturated=(heat,)
    )
    (told,) = rows(None, make_side(error))
    assert (told[3], told[-1]) == (
        "128 of 140",
        Identifier("flags, heat (97% at its bounds)"),
    )


def test_a_model_without_a_budget_has_no_row() -> None:
    assert not accuracy_table(make_report("measured").verdict.findings).rows
