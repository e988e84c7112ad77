from __future__ import annotations

import pytest

from tests.support.report_parts import summary
from tunegate.artifacts.warmed import Warmed, WarmedModel
from tunegate.commands.warm import told_of


def warmed(stopped: str, left: int) -> Warmed:
    models = tuple(
        WarmedModel(model=name, target="cpu", tasks=4, known_before=1, known=3) for name in "ab"
    )
    tuning = summary(
        tasks=6, exact=2, tuned=1, measured=1, begun=1, trials=9, seconds=8.0, stopped=stopped
    )
    return Warmed(
        zone="main",
        models=models,
        left=left,
        is_published=True,
        tuning=tuning,
        notes=("told at once", "told at the end"),
    )


@pytest.mark.parametrize(
    ("stopped", "said"),
    [
        ("seconds", "run tunegate warm again, which goes on from there."),
        ("finished", "more tuning promises too little there"),
    ],
)
def test_what_is_left_is_said_to_go_on_only_where_it_does(stopped: str, said: str) -> None:
    lines = [*told_of(warmed(stopped, 2), ())]
    assert said in next(line for line in lines if line.startswith("2 tasks are left: "))


def test_the_parts_add_up_to_the_tasks_and_a_warning_is_told_once() -> None:
    lines = [*told_of(warmed("finished", 0), {"told at once"})]
    assert lines == [
        (
            "Tuning: 9 trials in 8.0 s, ended early: nothing more to try. Of 6 tasks: "
            "2 known before, 1 tuned now, 1 measured once, 1 begun, 1 not tuned."
        ),
        "A task of several models has a part in the row of each, and counts once here.",
        "note: told at the end",
    ]
