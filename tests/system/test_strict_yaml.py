"""YAML as people expect it."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tunegate.system.strict_yaml import read_yaml

INDENTED = (
    "it does not continue what stands above it. "
    "Check the indentation of this line and of those above it."
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("off", "off"),
        ("No", "No"),
        ("true", True),
        ("False", False),
        ("1:30", "1:30"),
        ("010", "010"),
        ("-0_7", "-0_7"),
        ("0x10", 16),
        ("0", 0),
        ("1e12", "1e12"),
        ("1:30.5", "1:30.5"),
        ("12", 12),
        ("-1.5e+3", -1500.0),
        ("2024-01-01", "2024-01-01"),
        ("2024-13-45", "2024-13-45"),
        ("[a, {b: ~}]", ["a", {"b": None}]),
        ("x: &x {a: 1}\ny: {<<: *x, a: 2}", {"x": {"a": 1}, "y": {"a": 2}}),
    ],
)
def test_a_value_is_what_it_looks_like(text: str, value: object) -> None:
    assert read_yaml(text) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: 2\na: 3", "line 3: key a is given twice. Fix the line."),
        ("a:\n  b: 1\n  'b': 2", "line 3: key b is given twice. Fix the line."),
        ("? [a]\n: b", "line 1: a key must be a text. Fix the line."),
        ("? {a: b}\n: c", "line 1: a key must be a text. Fix the line."),
        ("a: .nan", "line 1: .nan is not a number that can be used. Fix the line."),
        ("a: -.inf", "line 1: -.inf is not a number that can be used. Fix the line."),
        ("a: b: c", "line 1: mapping values are not allowed here. Fix the line."),
        ("a:\n  - b: 1\n   c: 2", f"line 3: {INDENTED}"),
        ("- a\nb: 1", f"line 2: {INDENTED}"),
        ("a:\n    b: 1\n  c: 2", f"line 3: {INDENTED}"),
        ("\ta: 1", "line 1: found character '\\t' that cannot start any token. Fix the line."),
        ("a: \x07", "special characters are not allowed. Fix the line."),
        ("a: !!int x", "invalid literal for int() with base 10: 'x'. Correct the value."),
        ("[" * 5000, "nested too deeply. Simplify it."),
        ("[" * 60 + "]" * 60, "line 1: nested too deeply. Fix the line."),
        ('a: "\\udc00"', r"line 1: an escape from \ud800 to \udfff is no character. Fix the line."),
        ("a: &a [*a]", "line 1: an alias of what it is part of. Fix the line."),
        ("x" * 300_000, "larger than 256 KiB. Shorten it."),
        (
            f"a: 0x{'1' * 5000}",
            f"line 1: 0x{'1' * 38} is not a number that can be used. Fix the line.",
        ),
        (
            "a: 1\n---\nb: 2",
            (
                "line 2: expected a single document in the stream, but found another document. "
                "Fix the line."
            ),
        ),
    ],
)
def test_what_is_wrong_is_one_line(text: str, problem: str) -> None:
    with pytest.raises(yaml.YAMLError) as raised:
        read_yaml(text)
    assert str(raised.value) == problem


def test_no_python_is_run() -> None:
    with pytest.raises(yaml.YAMLError, match="could not determine a constructor"):
        read_yaml("!!python/object/apply:os.system [exit]")


@given(
    st.dictionaries(st.text(), st.integers(-(2**60), 2**60) | st.text() | st.booleans() | st.none())
)
def test_what_yaml_writes_is_read_back(content: dict[str, object]) -> None:
    assert read_yaml(yaml.safe_dump(content)) == content


@pytest.mark.parametrize("repeated", ["[*{0}, *{0}, *{0}]", "{{<<: [*{0}, *{0}, *{0}]}}"])
def test_aliases_of_billions_of_values_are_refused_before_they_are_made(repeated: str) -> None:
    """Each line has three times the values of the one before."""
    lines = [
        "v0: &v0 {a: 1}",
        *(f"v{n}: &v{n} {repeated.format(f'v{n - 1}')}" for n in range(1, 25)),
    ]
    with pytest.raises(yaml.YAMLError, match="more than 50000 values, with what aliases repeat"):
        read_yaml("\n".join(lines))
