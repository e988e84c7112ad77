from __future__ import annotations

import msgspec

from tests.report.budgeted import BUDGETED, OF_AN_EARLIER_RUN, make_error, make_outcome
from tunegate.report.candidates import candidates_table


def test_each_candidate_has_its_time_with_its_spread_its_error_and_why() -> None:
    first, *others = candidates_table(BUDGETED).cells()
    assert first == [
        "1",
        "OpenVINO (bf16)",
        "1.900 ms",
        "1.862 ms",
        "1.995 ms",
        "0.8% (0.7 to 1.1)",
        "ships",
    ]
    assert [cells[-1] for cells in others] == [
        "slower",
        "slower",
        "slower, and more exact",
        "slower",
        "TVM compiles the whole model",
    ]


def test_a_bound_that_nobody_knows_is_a_question() -> None:
    outcomes = [make_outcome("A", 1.0, make_error(0.5, 0.1, None)), make_outcome("B", 2.0)]
    assert candidates_table(outcomes).cells()[0][5] == "0.5% (0.1 to ?)"


def test_what_is_refused_has_the_error_that_refuses_it() -> None:
    untold = msgspec.structs.replace(make_error(0.0, 0.0, None), samples=0)
    refused = (
        make_outcome("A", None, make_error(28.0, 24.3, 44.3), reason="too far off"),
        make_outcome("B", None, untold, reason="no output tells its error"),
    )
    rows = candidates_table((*BUDGETED[:1], *refused)).cells()
    assert [cells[5] for cells in rows[1:]] == ["28% (24.3 to 44.3)", "–"]


def test_an_error_that_this_run_did_not_measure_is_no_exact_one() -> None:
    errors = [cells[5] for cells in candidates_table(OF_AN_EARLIER_RUN).cells()]
    assert errors == ["0.8% (0.7 to 1.1)", "–", "–", "–", "not in this run", "–"]


def test_one_candidate_alone_needs_no_table() -> None:
    assert candidates_table(BUDGETED[:1]).cells() == []
