from __future__ import annotations

from tunegate.wording import did_you_mean


def test_the_word_that_looks_most_like_it_is_asked_for() -> None:
    assert did_you_mean("modle", ["target", "model"], "Remove it.") == "Did you mean model?"


def test_without_a_word_that_looks_like_it_something_else_is_said() -> None:
    assert did_you_mean("x", ["target", "model"], "Remove it.") == "Remove it."
    assert did_you_mean("x", [], "Remove it.") == "Remove it."
