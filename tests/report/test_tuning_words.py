from __future__ import annotations

import pytest

from tests.support import report_parts as parts
from tunegate.report.sentences import tuning_words


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"tasks": 2, "exact": 1, "tuned": 1, "trials": 1, "seconds": 2.0, "usd": 0.5},
            (
                "1 trial in 2.0 s, 0.5000 USD, ended early: nothing more to try. "
                "Of 2 tasks: 1 known before, 1 tuned now"
            ),
        ),
        (
            {"tasks": 1, "exact": 0, "tuned": 1, "trials": 9, "stopped": "converged"},
            (
                "9 trials in 0 s, ended early: no task promised "
                "budget.min-gain-percent-per-minute any more. Of 1 task: 1 tuned now"
            ),
        ),
        (
            {"tasks": 1, "exact": 1},
            "no trial, nothing to tune. The only task was known before",
        ),
        ({"tasks": 4, "exact": 4}, "no trial, nothing to tune. All 4 tasks were known before"),
        (
            {"tasks": 3, "exact": 0, "begun": 2, "trials": 4, "stopped": "usd", "joules": 9.0},
            "4 trials in 0 s, 9 J, money budget spent. Of 3 tasks: 2 begun, 1 not tuned",
        ),
        (
            {"tasks": 3, "exact": 1, "miss": 2, "waiting": 2},
            "no trial, nothing to tune. Of 3 tasks: 1 known before, 2 left to tunegate warm",
        ),
        (
            {"tasks": 9, "exact": 1, "transfer": 6, "miss": 2, "waiting": 2, "stopped": "usd"},
            (
                "no trial, no budget for a trial. Of 9 tasks: 1 known before, 2 left to tunegate "
                "warm, 6 not tuned"
            ),
        ),
        ({"tasks": 0, "exact": 0}, "nothing here is compiled"),
    ],
)
def test_what_tuning_did_is_one_sentence_and_the_rest_another(
    fields: dict[str, float], said: str
) -> None:
    assert tuning_words(parts.summary(**fields)) == said
