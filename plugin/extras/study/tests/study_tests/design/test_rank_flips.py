from __future__ import annotations

from study_tests.design.synthetic import (
    LAYOUT,
    RUNTIME,
    THREADS,
    TUNING,
    Truth,
    measured_study,
    settings_of,
)
from tunegate_study.design.measured import measured_cells
from tunegate_study.design.rank_flips import rank_flips
from tunegate_study.studies import Axis, CellSetting, RankFlip

AXES = [RUNTIME, TUNING, LAYOUT, THREADS]


def flips(truth: Truth, axes: list[Axis] = AXES, seed: int = 1) -> tuple[RankFlip, ...]:
    return rank_flips(axes, measured_cells(measured_study(settings_of(axes), truth, seed=seed)))


def tuning_changes_the_layout(setting: CellSetting) -> float:
    return -0.2 * ((setting["tuning"] == "64") == (setting["layout"] == "nhwc"))


def test_tuning_changes_which_layout_is_the_best() -> None:
    found = [f for f in flips(tuning_changes_the_layout) if f.ranked == ("layout",)]
    assert {(f.axis, f.levels) for f in found} == {("tuning", ("untuned", "64"))}
    assert len(found) == 6  # for each runtime and number of threads
    flip = found[0]
    assert flip.best == ({"layout": "nchw"}, {"layout": "nhwc"})
    assert all(15 < percent < 21 for percent in flip.faster_percent)


def test_what_is_best_everywhere_never_flips() -> None:
    for seed in range(5):
        assert not flips(lambda each: 0.5 * (each["layout"] == "nhwc"), seed=seed)


def test_equal_ones_that_scatter_do_not_flip() -> None:
    assert not any(flips(lambda _: 0.0, seed=seed) for seed in range(10))


def test_no_choice_is_the_best_that_another_one_measured_there_beats() -> None:
    axes = [RUNTIME, TUNING]
    cells = measured_study(settings_of(axes), tuning_changes_the_runtime)
    untuned = {"runtime": "openvino", "tuning": "untuned"}
    hidden = [each for each in cells if each.setting != untuned]
    found = [rank_flips(axes, measured_cells(each)) for each in (cells, hidden)]
    of_tuning = [[flip for flip in flips if flip.axis == "tuning"] for flips in found]
    assert [len(flips) for flips in of_tuning] == [1, 0]


def tuning_changes_the_runtime(setting: CellSetting) -> float:
    if setting["runtime"] == "openvino":
        return -1.0 if setting["tuning"] == "64" else 1.0
    return -0.2 * ((setting["tuning"] == "64") == (setting["runtime"] == "tvm"))


def test_threads_are_given_and_never_ranked() -> None:
    found = flips(lambda each: -0.3 * (each["threads"] == "2") * (each["runtime"] == "tvm"))
    assert all("threads" not in flip.ranked for flip in found)


def test_one_best_for_one_thread_is_another_for_two() -> None:
    def truth(each: CellSetting) -> float:
        return 0.3 * ((each["threads"] == "2") == (each["runtime"] == "tvm"))

    axes = [Axis(name="runtime", levels=("onnxruntime", "tvm")), LAYOUT, THREADS]
    found = flips(truth, axes)
    together = [flip for flip in found if flip.ranked == ("runtime", "layout")]
    assert {flip.axis for flip in found} == {"threads"}
    assert len(together) <= 1
    alone = [flip for flip in found if flip.ranked == ("runtime",)]
    assert [flip.best[0]["runtime"] for flip in alone] == ["tvm", "tvm"]
