from __future__ import annotations

import pytest

from tunegate.cli.parse import suggestion

FLAGS = ("--margin-percent", "--minutes", "--head", "--cache-url", "--cache-mode")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("--minuts", " Did you mean --minutes?"),
        ("--margin", " Did you mean --margin-percent?"),
        ("--cache", " Did you mean --cache-mode or --cache-url?"),
        ("head", " Did you mean --head?"),
        ("--frobnicate", ""),
        ("-", ""),
        ("", ""),
    ],
)
def test_the_nearest_words_are_named_and_nothing_where_none_is_near(word: str, meant: str) -> None:
    assert suggestion(word, FLAGS) == meant
