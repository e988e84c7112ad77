from __future__ import annotations

import json

from tests.report.budgeted import AFTER, BEFORE, FLOAT32, LIMITS, report_with
from tests.support.golden import Golden
from tests.support.html_outline import outline
from tunegate.artifacts.builds import ShippedErrors
from tunegate.report import comment, html, sarif, text
from tunegate.report.accuracy import error_moves

MOVED = ShippedErrors(base=BEFORE, head=AFTER, moved=("max-error",), limits=LIMITS)


def test_every_rendering_says_that_the_error_got_larger_for_nothing(golden: Golden) -> None:
    report = report_with(MOVED)
    golden.check("error-moved.md", comment.render(report))
    golden.check("error-moved.html.txt", "\n".join(outline(html.render(report)).lines) + "\n")
    golden.check("error-moved.txt", text.render(report))


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


def test_an_error_that_did_not_move_is_not_told() -> None:
    (finding,) = report_with(ShippedErrors(base=BEFORE, head=AFTER)).verdict.findings
    assert not list(error_moves(finding, str))
