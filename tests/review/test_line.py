from __future__ import annotations

import pytest

from tunegate.review.config_file import line_of

TEXT = """\
models:
  - path: a
  - path: b
    inputs: {x: [1]}
gate:
  pairs: 4
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("gate", 5),
        ("gate.pairs", 6),
        ("models[1].inputs", 4),
        ("models[1]", 3),
        ("gate.unknown", 5),
        ("models[9].path", 1),
        ("", 1),
    ],
)
def test_a_key_has_the_line_of_what_is_nearest_to_it(key: str, line: int) -> None:
    assert line_of(TEXT, key) == line


@pytest.mark.parametrize("text", ["", "a: [", "- 1"])
def test_a_text_without_the_key_has_its_first_line(text: str) -> None:
    assert line_of(text, "gate.pairs") == 1
