from __future__ import annotations

import pytest

from tunegate.artifacts.warmed import WarmedModel
from tunegate.commands.diagnosing.diagnosis import Diagnosis
from tunegate.commands.diagnosing.gated_models import GatedModel
from tunegate.commands.diagnosing.shown import show_diagnosis
from tunegate.edges.config.sources import Setting
from tunegate.edges.machine.health_check import HealthCheck

DIAGNOSIS = Diagnosis(
    checks=(HealthCheck("cache", ok=False, detail="/tmp/[/b]: install tunegate[tvm]"),),
    settings=(Setting("gate.seconds", "240.0", "default"), Setting("dims.n", "3", "file")),
    models=(
        GatedModel(
            model="[red].onnx",
            entry="*.onnx",
            targets=("cpu", "gpu"),
            state="committed",
            tasks=(
                WarmedModel(model="[red].onnx", target="cpu", tasks=3, known_before=1, known=1),
            ),
        ),
    ),
)


def test_what_is_wrong_is_said_last_and_nothing_is_markup(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_diagnosis(DIAGNOSIS, all_settings=False)
    shown = capsys.readouterr().out
    assert "/tmp/[/b]: install tunegate[tvm]" in shown
    assert "[red].onnx" in shown
    assert "1 of 3" in shown
    assert "gate.seconds" not in shown
    assert shown.endswith(
        "1 setting is at its default: -v shows them\n"
        "2 tasks are untuned: tunegate warm tunes what matters\n"
        "to mend: cache\n"
    )


def test_all_settings_are_shown_where_they_are_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_diagnosis(DIAGNOSIS, all_settings=True)
    assert "gate.seconds" in capsys.readouterr().out
