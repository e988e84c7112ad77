from __future__ import annotations

import msgspec
import pytest

from tunegate.artifacts.verdicts import WarmedModel
from tunegate.cli.handlers.doctor import Diagnosis, show_diagnosis
from tunegate.cli.handlers.doctor_checks import GatedModel, Setting
from tunegate.system.machine.health_check import HealthCheck

DIAGNOSIS = Diagnosis(
    checks=(
        HealthCheck("cache", ok=False, detail="/tmp/[/b]: install tunegate[tvm]", section="cache"),
        HealthCheck("python", ok=True, detail="3.12.1", section="machine"),
        HealthCheck("load", ok=True, detail="load 8.0: wait", section="machine", warns=True),
        HealthCheck("tvm", ok=True, detail="apache-tvm 9", section="runtimes"),
        HealthCheck("linker", ok=True, detail="/usr/bin/g++", section="runtimes"),
        HealthCheck("shapes", ok=True, detail="all have a size", section="models"),
    ),
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
    show_diagnosis(DIAGNOSIS, is_whole=False)
    shown = capsys.readouterr().out
    assert shown.index("all have a size") < shown.index("/tmp/[/b]: install tunegate[tvm]")
    assert shown.endswith(
        "-v shows each check, 1 model, 2 settings\n"
        "2 tasks are untuned: tunegate warm tunes what matters\n"
        "to mend: cache\n"
    )


def test_a_part_that_is_fine_is_one_line_and_a_warning_stands_among_what_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_diagnosis(DIAGNOSIS, is_whole=False)
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    parts, rest = lines[2:5], lines[5:]
    assert [" ".join(line.split()) for line in parts] == [
        "machine ok python 3.12.1",
        "runtimes ok tvm, linker",
        "models ok 1 model, 1 of 3 tasks tuned; shapes all have a size",
    ]
    assert [line.split()[:2] for line in rest if line[:4] in ("cach", "load")] == [
        ["cache", "no"],
        ["load", "warn"],
    ]
    assert "[red].onnx" not in "".join(lines)


def test_the_last_line_agrees_with_those_above_it_and_no_line_is_too_wide(
    capsys: pytest.CaptureFixture[str],
) -> None:
    slow = HealthCheck("load", ok=True, detail="8.0: wait " * 30, section="machine", warns=True)
    absent = HealthCheck(
        "openvino", ok=True, detail="optional: pip", section="runtimes", is_absent=True
    )
    show_diagnosis(Diagnosis(checks=(DIAGNOSIS.checks[1],)), is_whole=False)
    assert capsys.readouterr().out.splitlines()[-1] == "All is well."
    show_diagnosis(Diagnosis(checks=(slow, absent)), is_whole=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "All works; better with a look at: load"
    assert max(map(len, lines)) <= 100
    assert [line.split() for line in lines if "openvino" in line] == [
        ["runtimes", "absent", "openvino:", "optional,", "not", "installed"]
    ]


def test_models_that_are_not_as_committed_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    (model,) = DIAGNOSIS.models
    changed = msgspec.structs.replace(model, state="not committed yet")
    show_diagnosis(msgspec.structs.replace(DIAGNOSIS, models=(changed,)), is_whole=False)
    assert "[red].onnx" in capsys.readouterr().out


def test_all_is_shown_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    show_diagnosis(DIAGNOSIS, is_whole=True)
    shown = capsys.readouterr().out
    for told in ("gate.seconds", "dims.n", "[red].onnx", "1 of 3", "apache-tvm 9", "load 8.0"):
        assert told in shown
