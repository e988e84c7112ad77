from __future__ import annotations

import io

import pytest

from tunegate.artifacts.plans import ExpectedStep
from tunegate.system.progress.shown_progress import Terminal


class Tty(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_finished_steps_stay_on_a_terminal_with_their_time() -> None:
    stream = Tty()
    live = Terminal(stream)
    live.step("measure")
    live.step("decide")
    live.close()
    shown = stream.getvalue()
    assert shown.count("✓") == 2
    assert "measure" in shown
    assert "decide" in shown


def test_a_plan_gives_each_step_its_number_and_the_run_a_bar() -> None:
    stream = Tty()
    live = Terminal(stream)
    live.expect(
        [
            ExpectedStep("build", (20.0,), "build 1 model"),
            ExpectedStep("measure", (40.0,), "measure"),
        ]
    )
    live.step("build: 2 builds", "build")
    live.close()
    shown = stream.getvalue()
    assert "plan: build 1 model, measure; about 1 min" in shown
    assert "[1/2] build: 2 builds" in shown
    assert "about 1 min left" in shown
    assert "━" in shown


@pytest.mark.parametrize("text", ["[red]conv[/red]", "matmul[3]", "[/]", "[bold"])
def test_names_from_a_pull_request_are_shown_as_they_are(text: str) -> None:
    stream = Tty()
    live = Terminal(stream)
    live.step(text)
    live.update(text)
    live.warn(text)
    live.close()
    assert stream.getvalue().count(text) >= 3
