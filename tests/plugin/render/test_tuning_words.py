from __future__ import annotations

import pytest

from tests.support import report_parts as parts
from tunegate.render.tuning_words import tuning_words


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"tasks": 2, "exact": 1, "miss": 1, "trials": 1, "seconds": 2.0, "usd": 0.5},
            "1 trial in 2.0 s, 0.5000 USD, finished; 1 of 2 tasks tuned before, 1 untuned",
        ),
        (
            {"tasks": 1, "exact": 1},
            "no trial, nothing to tune; 1 of 1 task tuned before",
        ),
        (
            {"tasks": 3, "exact": 0, "transfer": 2, "trials": 4, "stopped": "usd", "joules": 9.0},
            (
                "4 trials in 0 s, 9 J, money budget spent; 0 of 3 tasks tuned before, "
                "2 transferred from other shapes"
            ),
        ),
        (
            {"tasks": 3, "exact": 1, "miss": 2, "waiting": 2},
            (
                "no trial, nothing to tune; 1 of 3 tasks tuned before, 2 untuned, "
                "left to tunegate warm"
            ),
        ),
        (
            {
                "tasks": 9,
                "exact": 1,
                "transfer": 6,
                "unfinished": 5,
                "miss": 2,
                "waiting": 2,
                "stopped": "usd",
            },
            (
                "no trial, no budget for one; 1 of 9 tasks tuned before; of the other 8 (5 begun, "
                "1 transferred from other shapes, 2 untuned) 2 are left to tunegate warm"
            ),
        ),
        (
            {"tasks": 6, "exact": 0, "miss": 6, "waiting": 4, "trials": 1, "seconds": 12.0},
            (
                "1 trial in 12 s, finished; 0 of 6 tasks tuned before; of these 6, all untuned, "
                "4 are left to tunegate warm"
            ),
        ),
        ({"tasks": 0, "exact": 0}, "no task of this change is compiled"),
    ],
)
def test_tuning_is_told_in_a_sentence(fields: dict[str, float], said: str) -> None:
    assert tuning_words(parts.summary(**fields)) == said
