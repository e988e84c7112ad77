from __future__ import annotations

from tests.support.report_parts import summary
from tunegate.report.sentences import stopped_words, tuning_ended


def test_a_cap_is_named_in_words() -> None:
    assert stopped_words("usd") == "money budget spent"


def test_a_word_nobody_told_us_stays_as_it_is() -> None:
    assert stopped_words("eclipse") == "eclipse"


def test_with_every_task_known_there_was_nothing_to_tune() -> None:
    assert tuning_ended(summary()) == "nothing to tune"
    spent = summary(exact=9, miss=1, trials=3, stopped="trials")
    assert tuning_ended(spent) == "trial budget spent"
    assert tuning_ended(summary(exact=9, miss=1, stopped="trials")) == "no budget for a trial"
