import msgspec
import pytest

from tests.support.report_parts import summary
from tunegate.artifacts.builds import ErrorEstimate
from tunegate.artifacts.verdicts import Warmed, WarmedModel, WarmedShipping
from tunegate.cli.handlers.warm import exit_code, note_lines


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
    lines = [*note_lines(warmed(stopped, 2), ())]
    assert said in next(line for line in lines if line.startswith("2 tasks are left: "))


def test_the_parts_add_up_to_the_tasks_and_a_warning_is_told_once() -> None:
    lines = [*note_lines(warmed("finished", 0), {"told at once"})]
    assert lines == [
        (
            "Tuning: 9 trials in 8.0 s, ended early: nothing more to try. Of 6 tasks: "
            "2 known before, 1 tuned now, 1 measured once, 1 begun, 1 not tuned."
        ),
        "A task of several models has a part in the row of each, and counts once here.",
        "note: told at the end",
    ]


def test_what_each_model_ships_with_is_a_line_with_its_error() -> None:
    error = ErrorEstimate(what="max-error", center=0.8, low=0.7, high=1.1, samples=74, limit=2.0)
    models: tuple[dict[str, object], ...] = (
        {"title": "TVM (int8)", "estimates": (error,), "is_drawn": True},
        {"title": "TVM (int8)", "is_remembered": True, "has_unknown_error": True},
        {"title": "ONNX Runtime", "trouble": ("TVM (whole): CUDA error 700",)},
        {"reason": "no LSTM."},
    )
    ships = tuple(WarmedShipping(model="m", target="cpu", **fields) for fields in models)  # type: ignore[arg-type]
    lines = [*note_lines(msgspec.structs.replace(warmed("finished", 0), ships=ships), ())]
    assert lines[:4] == [
        (
            "m on cpu ships with TVM (int8), with a max-error of 0.8% (0.7 to 1.1) on 74 drawn "
            "inputs; the budget is 2%."
        ),
        (
            "m on cpu ships with TVM (int8), as an earlier run chose: the next run that builds it "
            "measures it."
        ),
        "m on cpu ships with ONNX Runtime. TVM (whole): CUDA error 700.",
        "m on cpu ships with nothing: no LSTM.",
    ]


@pytest.mark.parametrize(
    ("reason", "is_published", "code"),
    [("", True, 0), ("", False, 4), ("no LSTM.", True, 2), ("no LSTM.", False, 2)],
)
def test_a_model_shipped_with_nothing_fails(reason: str, is_published: bool, code: int) -> None:
    ships = (WarmedShipping(model="m", target="cpu", reason=reason),)
    found = msgspec.structs.replace(warmed("finished", 0), ships=ships, is_published=is_published)
    assert exit_code(found) == code
