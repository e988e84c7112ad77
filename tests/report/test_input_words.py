from __future__ import annotations

import pytest

from tunegate.artifacts.inputs import (
    Columns,
    Constant,
    Drawn,
    DrawnInput,
    Files,
    InputRule,
    Integers,
    Normal,
    OneOf,
    Uniform,
)
from tunegate.report.report_tables import values_in_words


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (Normal(), "standard normal"),
        (Normal(123.675, 58.395), "normal, 123.7 ± 58.4"),
        (Uniform(0.0, 255.0), "0 to 255"),
        (Integers(0, 30521), "0 to 30521"),
        (Constant(16000), "always 16000"),
        (OneOf(("a", "b")), "one of a, b"),
        (OneOf(tuple("abcdef")), "one of a, b, c, d and 2 more"),
        (OneOf(("a",), words=8), "words of a"),
        (
            Columns(1, (Integers(0, 2), Integers(0, 2), Normal())),
            "column 0 to 1: 0 to 2; column 2: standard normal",
        ),
        (Files(("x.npy",)), "the array of a file"),
        (Files(("x.npy", "z.npy")), "2 cases, one in each launch"),
    ],
)
def test_values_are_told_in_a_few_words(values: Drawn, words: str) -> None:
    assert values_in_words(DrawnInput("x", (1,), "int64", InputRule(values))) == words


def test_booleans_without_a_rule_are_fair() -> None:
    assert values_in_words(DrawnInput("x", (1,), "bool")) == "true or false"


def test_many_columns_are_cut() -> None:
    columns = Columns(1, tuple(Constant(number) for number in range(9)))
    words = values_in_words(DrawnInput("x", (1, 9), "int64", InputRule(columns)))
    assert words.endswith("column 3: always 3; and 5 more")
