from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.errors import ConfigError
from tunegate_study.study_file import load_study, parse_study, studied_models

MODEL = "models: [m.onnx]\n"


def refused(text: str) -> str:
    with pytest.raises(ConfigError) as found:
        parse_study(text, "study.yaml")
    said = str(found.value)
    assert "\n" not in said
    return said.removeprefix("study.yaml: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MODEL + "axes: {precison: [int8]}", "unknown axis axes.precison. Did you mean precision?"),
        (MODEL + "axes: {colour: [red]}", "unknown axis axes.colour. Known: runtime, precision"),
        (MODEL + "buget: {minutes: 3}", "unknown key buget. Did you mean budget?"),
        (MODEL + "budget: {minuts: 3}", "unknown key budget.minuts. Did you mean minutes?"),
        ("models: [{path: m.onnx, nam: x}]", "unknown key models[0].nam. Did you mean name?"),
        (MODEL + "axes: {threads: [1, 2, 1]}", "axes.threads: 1 is given 2 times. Remove one."),
        (MODEL + "axes: {tuning: [8, 8]}", "axes.tuning: 8 is given 2 times. Remove one."),
        (MODEL + "axes: {tuning: []}", "axes.tuning: no level. Write one, or remove it."),
        (MODEL + "axes: {tuning: [0]}", "axes.tuning[0]"),
        (MODEL + "axes: {layout: [nwhc]}", "axes.layout[0]"),
        ("models: [a/m.onnx, b/m.onnx]", "models: m is given 2 times. Give one a name."),
        (MODEL + "axes: {target: [cpuu]}", 'axes.target: unknown "cpuu". Did you mean cpu?'),
        (MODEL + "axes: {variant: [half]}", 'axes.variant: unknown "half". Known: given.'),
        (MODEL + "rounds: 1", "rounds"),
        ("models: []", "models"),
        ("axes: {}", "models is missing"),
        ("models: [", "line 1"),
        ("", "the file"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(text: str, said: str) -> None:
    assert said in refused(text)


def test_each_profile_and_each_file_is_told_apart() -> None:
    text = (
        "models:\n- path: d/m.onnx\n  dims: {n: 1, w: 8}\n  variants: {half: d/h.onnx}\n"
        "  profiles:\n    small: {dims: {w: 4}}\n    large: {}\n- other.onnx\n"
    )
    small, large, other = studied_models(parse_study(text, "s"))
    assert [each.name for each in (small, large, other)] == ["m@small", "m@large", "other"]
    assert (small.dims, large.dims) == ({"n": 1, "w": 4}, {"n": 1, "w": 8})
    assert small.files == {"given": "d/m.onnx", "half": "d/h.onnx"}


def test_what_is_not_varied_has_one_level() -> None:
    axes = parse_study(MODEL, "s").axes
    assert (axes.precision, axes.tuning, axes.layout) == (("float32",), ("zero-trial",), ("auto",))


def test_a_file_that_is_not_there_or_no_text_is_one_line(tmp_path: Path) -> None:
    for body in (None, b"\xff\xfe"):
        file = tmp_path / "study.yaml"
        if body is not None:
            file.write_bytes(body)
        with pytest.raises(ConfigError, match="cannot be read"):
            load_study(file)
