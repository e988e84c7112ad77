from __future__ import annotations

import msgspec

from study_tests.design.synthetic import RUNTIME, TUNING, cell, measured_study, settings_of
from tunegate_study.design.summary import StudiedCells, summarize
from tunegate_study.studies import CellSetting, StudyDesign

AXES = (RUNTIME, TUNING)


def subject(repeats: tuple[tuple[CellSetting, CellSetting], ...] = ()) -> StudiedCells:
    design = StudyDesign(kind="full", axes=AXES, possible=4, chosen=4, left_out=())
    return StudiedCells(file="study.yaml", rounds=5, design=design, repeats=repeats)


def test_a_runtime_that_is_not_tuned_may_be_beaten_by_one_that_is() -> None:
    """It is measured once, and stands in the ranks of both levels."""
    cells = measured_study(
        [
            {"runtime": "onnxruntime", "tuning": "untuned"},
            {"runtime": "tvm", "tuning": "untuned"},
            {"runtime": "tvm", "tuning": "64"},
        ],
        lambda each: {"onnxruntime": 0.0, "tvm": 0.5 if each["tuning"] == "untuned" else -0.5}[
            each["runtime"]
        ],
    )
    twin = ({"runtime": "onnxruntime", "tuning": "64"}, cells[0].setting)
    assert summarize(subject(), cells, [""] * 3).rank_flips == ()
    study = summarize(subject((twin,)), cells, [""] * 3)
    (flip,) = study.rank_flips
    assert (flip.axis, flip.best) == ("tuning", ({"runtime": "onnxruntime"}, {"runtime": "tvm"}))
    runtime, tuning = study.main_effects
    assert (runtime.axis, runtime.settings, runtime.is_clear) == ("runtime", 2, False)
    assert (tuning.axis, tuning.settings) == ("tuning", 1)


def test_what_is_missing_is_unfinished_and_what_was_refused_is_not() -> None:
    settings = settings_of(AXES)
    refused = msgspec.structs.replace(cell(settings[0], []), reason="no such operator")
    cells = [refused, cell(settings[1], [0.1] * 5), cell(settings[2], [0.1])]
    study = summarize(subject(), cells, [""] * 3)
    assert study.unfinished == 1
    assert summarize(subject(), [], []).main_effects == ()
