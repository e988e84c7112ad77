from __future__ import annotations

import pytest

from tests.support import report_parts as parts
from tunegate.render.tuning_words import tuning_words


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"tasks": 2, "exact": 1, "miss": 1, "trials": 1, "seconds": 2.0, "usd": 0.5},
            "1 trial on 1 of 2 tasks in 2.0 s, 0.5000 USD, finished. 1 was tuned before",
        ),
        ({"tasks": 1, "exact": 1}, "no trial, nothing to tune. The only task was tuned before"),
        ({"tasks": 4, "exact": 4}, "no trial, nothing to tune. All 4 tasks were tuned before"),
        (
            {"tasks": 3, "exact": 0, "transfer": 2, "trials": 4, "stopped": "usd", "joules": 9.0},
            "4 trials on 3 tasks in 0 s, 9 J, money budget spent. None was tuned before",
        ),
        (
            {"tasks": 3, "exact": 1, "miss": 2, "waiting": 2},
            (
                "no trial, nothing to tune. 1 of 3 tasks was tuned before; "
                "2 are left to tunegate warm"
            ),
        ),
        (
            {"tasks": 3, "exact": 0, "miss": 3, "waiting": 3},
            (
                "no trial, nothing to tune. None was tuned before; "
                "3 of 3 tasks are left to tunegate warm"
            ),
        ),
        (
            {"tasks": 9, "exact": 1, "transfer": 6, "miss": 2, "waiting": 2, "stopped": "usd"},
            (
                "no trial on 6 of 9 tasks, no budget for one. 1 was tuned before; "
                "2 are left to tunegate warm"
            ),
        ),
        (
            {"tasks": 59, "exact": 1, "miss": 58, "waiting": 54, "trials": 120, "seconds": 40.0},
            (
                "120 trials on 4 of 59 tasks in 40 s, finished. 1 was tuned before; "
                "54 are left to tunegate warm"
            ),
        ),
        ({"tasks": 0, "exact": 0}, "no task of this change is compiled"),
    ],
)
def test_what_tuning_did_is_one_sentence_and_the_rest_another(
    fields: dict[str, float], said: str
) -> None:
    assert tuning_words(parts.summary(**fields)) == said
