from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tunegate.artifacts.verdicts import Named, NextStep
from tunegate.report.comment import numbered_steps, step_markdown


def test_names_are_code_and_words_keep_their_blanks() -> None:
    step = NextStep(("Look at ", Named("fire5/expand3x3"), " in ", Named("a.onnx"), ": +1.000 ms."))
    assert step_markdown(step) == "Look at `fire5/expand3x3` in `a.onnx`: +1.000 ms."
    assert step.text == "Look at fire5/expand3x3 in a.onnx: +1.000 ms."


@given(st.text(max_size=20))
def test_no_name_and_no_word_adds_structure(hostile: str) -> None:
    text = step_markdown(NextStep((f"Look {hostile} at ", Named(hostile), f" {hostile}.")))
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(f"1. {text}")
    tags = {part.split(">")[0].split(" ")[0].strip("/") for part in page.split("<")[1:]}
    assert tags <= {"ol", "li", "code"}


def test_what_comes_after_the_first_steps_is_folded_with_its_numbers() -> None:
    first, others = numbered_steps([NextStep((f"Do {n}.",)) for n in range(1, 9)])
    assert first.splitlines() == [f"{n}. Do {n}." for n in range(1, 5)]
    assert others.splitlines() == [f"{n}. Do {n}." for n in range(5, 9)]


def test_one_step_more_needs_no_fold() -> None:
    first, others = numbered_steps([NextStep((f"Do {n}.",)) for n in range(5)])
    assert len(first.splitlines()) == 5
    assert others == ""
