from __future__ import annotations

import pytest

from tunegate.decide.advice import busy_words


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"load average": "13.70 8.00 4.00", "cores": "2"}, " (the load was 13.7 on 2 cores)"),
        ({"load average": "2.90 8.00 4.00", "cores": "2"}, ""),
        ({"load average": "20.00 1.00 1.00", "cores": "64"}, ""),
        ({"load average": "5.00 1.00 1.00", "cores": "1"}, " (the load was 5.0 on 1 core)"),
        ({"load average": "", "cores": "2"}, ""),
        ({"load average": "9.00", "cores": "some"}, ""),
        ({}, ""),
    ],
)
def test_a_load_that_disturbs_is_told_with_the_cores_that_it_was_on(
    facts: dict[str, str], said: str
) -> None:
    assert busy_words(facts) == f"a quieter runner{said}"
