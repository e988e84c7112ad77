from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tunegate.artifacts.verdicts import Name, Step
from tunegate.render.comment.steps import numbered_steps, step_markdown


def test_names_are_code_and_words_keep_their_blanks() -> None:
    step = Step(("Look at ", Name("fire5/expand3x3"), " in ", Name("a.onnx"), ": +1.000 ms."))
    assert step_markdown(step) == "Look at `fire5/expand3x3` in `a.onnx`: +1.000 ms."
    assert step.text == "Look at fire5/expand3x3 in a.onnx: +1.000 ms."


@given(st.text(max_size=20))
def test_no_name_and_no_word_adds_structure(hostile: str) -> None:
    text = step_markdown(Step((f"Look {hostile} at ", Name(hostile), f" {hostile}.")))
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(f"1. {text}")
    tags = {part.split(">")[0].split(" ")[0].strip("/") for part in page.split("<")[1:]}
    assert tags <= {"ol", "li", "code"}


def test_what_comes_after_the_first_steps_is_folded_with_its_numbers() -> None:
    shown = numbered_steps([Step((f"Step {n}.",)) for n in range(1, 9)])
    before, folded = shown.split("<details>")
    assert "4. Step 4." in before
    assert "4 more steps" in folded
    assert "5. Step 5." in folded
    assert "8. Step 8." in folded


def test_one_step_more_needs_no_fold() -> None:
    assert "<details>" not in numbered_steps([Step((f"Step {n}.",)) for n in range(5)])
