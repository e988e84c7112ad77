import json

import msgspec

from tests.report.budgeted import AFTER, BEFORE, FLOAT32, LIMITS, make_error, make_side, report_with
from tests.support.html_outline import outline
from tunegate.artifacts.builds import SaturatedOutput, ShippedErrors, SideError
from tunegate.artifacts.inputs import DrawnInput, Files, InputRule, Normal
from tunegate.report import comment, html, sarif, text
from tunegate.report.accuracy import accuracy_table, error_moves
from tunegate.report.table import Identifier

BOTH = ShippedErrors(base=BEFORE, head=AFTER, limits=LIMITS)


def rows(base: SideError | None, head: SideError | None) -> list[list[object]]:
    report = report_with(ShippedErrors(base=base, head=head, limits=LIMITS))
    table = accuracy_table(report.verdict.findings).without("Model", "Target")
    return [list(cells) for cells in table.cells()]


def test_the_comment_and_the_page_tell_what_ships_with_its_interval() -> None:
    report = report_with(BOTH)
    assert (
        "| max-error 2% | OpenVINO (bf16): 0.8% (0.7 to 1.1) | OpenVINO (bf16): 1.6% (1.3 to 1.9) "
        "| `logits` |"
    ) in comment.render(report)
    cells = [line.strip() for line in outline(html.render(report)).lines]
    assert "td: OpenVINO (bf16): 99.2% (98 to 99.9)" in cells


def test_an_error_of_drawn_inputs_is_told_to_be_one() -> None:
    drawn = DrawnInput("x", (1,), "float32", InputRule(Normal()))
    given = DrawnInput("x", (1,), "float32", InputRule(Files(("a.npy",))))
    for inputs, is_told in (((drawn,), True), ((given, drawn), False), ((), False)):
        report = report_with(BOTH, inputs=inputs)
        assert ("drawn inputs, which say little" in comment.render(report)) == is_told
        assert ("drawn inputs, which say little" in html.render(report)) == is_told
    float32 = report_with(ShippedErrors(base=FLOAT32, head=FLOAT32), inputs=(drawn,))
    assert "say little" not in comment.render(float32)


def test_the_terminal_tells_how_far_what_ships_is_off() -> None:
    drawn = DrawnInput("x", (1,), "float32", InputRule(Normal()))
    told = " ".join(text.render(report_with(BOTH, inputs=(drawn,)), width=200).split())
    assert (
        "OpenVINO (bf16) has a max-error of 1.6% (1.3 to 1.9) on 128 drawn inputs; the budget is 2%"
    ) in told


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
    assert (told[2], told[-1]) == ("OpenVINO (bf16): 0.8% (0.7 to ?)", Identifier("mask, flags"))


def test_inputs_and_elements_that_tell_nothing_are_counted() -> None:
    heat = SaturatedOutput(output="heat", percent=97.3)
    error = msgspec.structs.replace(
        make_error(0.8, 0.7, 1.1), silent=12, saturated=("flags",), mostly_saturated=(heat,)
    )
    (told,) = rows(None, make_side(error))
    assert (told[3], told[-1]) == ("128 of 140", Identifier("flags, heat (97% at its bounds)"))


MOVED = ShippedErrors(base=BEFORE, head=AFTER, moved=("max-error",), limits=LIMITS)


def test_every_rendering_says_that_the_error_got_larger_for_nothing() -> None:
    report = report_with(MOVED)
    told = "rose from 0.8% (0.7 to 1.1) to 1.6% (1.3 to 1.9), and the head is not clearly faster"
    page = "\n".join(outline(html.render(report)).lines)
    for rendered_text in (comment.render(report), page, text.render(report, width=500)):
        assert told in " ".join(rendered_text.split())


def test_code_scanning_has_a_warning_at_the_model() -> None:
    (run,) = json.loads(sarif.render(report_with(MOVED)))["runs"]
    (result,) = run["results"]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert (rule["id"], result["level"]) == ("error-moved", "warning")
    assert "rose from 0.8% (0.7 to 1.1) to 1.6% (1.3 to 1.9)" in result["message"]["text"]


def test_float32_and_agreement_have_words_of_their_own() -> None:
    moved = ShippedErrors(base=FLOAT32, head=AFTER, moved=("min-agreement",))
    (finding,) = report_with(moved).verdict.findings
    (told,) = error_moves(finding, repr)
    assert told == (
        "'models/squeezenet.onnx' on 'cpu': the min-agreement of what ships fell from float32 to "
        "99.2% (98 to 99.9), and the head is not clearly faster"
    )
