import math
from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.measured_cells import (
    DEVICE,
    TARGET,
    make_build,
    make_builds,
    make_measurement,
    make_run,
    make_task,
)
from tunegate.artifacts.builds import BuiltTask, Cell
from tunegate.artifacts.measurements import MeasurementRun
from tunegate.config import GateConfig
from tunegate.decide.compare import compare, operator_differences
from tunegate.decide.decision import bounds
from tunegate.decide.sequential import PLANNED, affordable_analyses, is_hopeless


def test_times_inside_the_model_decide_what_holds_a_difference() -> None:
    head = make_build("b", tasks=[make_task("conv", 9.0, source="transfer")])
    before = {"conv": 2.0, "pool": 1.0, "relu": 0.5, "gone": 0.3}
    after = {"conv": 3.0, "pool": 1.02, "relu": 0.5, "new": 0.4}
    measured = make_measurement((0.1,) * 4, task_ms={"base": before, "head": after})
    found = operator_differences(make_builds(make_build("a"), head), measured)
    assert [(d.name, d.base_ms, d.head_ms) for d in found] == [
        ("conv", 2.0, 3.0),
        ("new", None, 0.4),
        ("gone", 0.3, None),
    ]
    assert [d.source for d in found] == ["transfer", "library", "library"]


@pytest.mark.parametrize(
    ("tasks", "title", "library"),
    [
        (1, "TVM and ONNX Runtime", "ONNX Runtime"),
        (0, "OpenVINO (int8)", "OpenVINO (int8)"),
        (0, "", "ONNX Runtime"),
    ],
)
def test_a_layer_without_a_schedule_is_run_by_its_own_runtime(
    tasks: int, title: str, library: str
) -> None:
    compiled = [make_task("matmul", 1.0)] * tasks
    head = msgspec.structs.replace(make_build("b", tasks=compiled), title=title)
    measured = make_measurement((0.1,) * 4, task_ms={"base": {}, "head": {"conv": 3.0}})
    (found,) = operator_differences(make_builds(make_build("a"), head), measured)
    assert (found.source, found.library) == ("library", library)


def test_without_times_inside_the_model_those_of_tuning_are_used() -> None:
    builds = make_builds(
        make_build("a", tasks=[make_task("conv", 1.0)]),
        make_build("b", tasks=[make_task("conv", 2.0, rid="other")]),
    )
    (found,) = operator_differences(builds, make_measurement((0.1,) * 4))
    assert (found.base_ms, found.head_ms) == (1.0, 2.0)


def test_a_layer_that_was_timed_on_one_side_alone_is_not_gone() -> None:
    untimed = msgspec.structs.replace(make_task("conv", 1.0), ms=None)
    builds = make_builds(
        make_build("a", tasks=[make_task("conv", 1.0)]), make_build("b", tasks=[untimed])
    )
    assert operator_differences(builds, make_measurement((0.1,) * 4)) == ()


def test_a_layer_with_another_workload_is_one_row_where_its_name_is_unmistakable() -> None:
    def renamed(workload: str, name: str, ms: float) -> BuiltTask:
        return msgspec.structs.replace(make_task(workload, ms), name=name)

    base = [renamed("a", "conv", 1.0), renamed("b", "mul", 2.0), renamed("c", "mul", 4.0)]
    head = [renamed("d", "conv", 6.0), renamed("e", "mul", 3.0)]
    builds = make_builds(make_build("a", tasks=base), make_build("b", tasks=head))
    found = operator_differences(builds, make_measurement((0.1,) * 4))
    assert [(each.name, each.base_ms, each.head_ms) for each in found] == [
        ("conv", 1.0, 6.0),
        ("mul", None, 3.0),
        ("mul", 2.0, None),
        ("mul", 4.0, None),
    ]


@pytest.mark.parametrize("unknown", ["tiles", "prior"])
def test_no_layer_is_told_where_tuning_has_not_timed_what_a_side_runs(
    unknown: Literal["tiles", "prior"],
) -> None:
    """It is not gone: the same layer runs, and nobody knows how fast."""
    mul = make_task("mul", 2.0)
    base = make_build("a", tasks=[make_task("conv", 1.0), mul])
    rid = "" if unknown == "tiles" else "picked"
    ours = make_task("conv", None, rid=rid, source=unknown)
    head = make_build("b", tasks=[ours, msgspec.structs.replace(mul, ms=2.5, rid="other")])
    assert operator_differences(make_builds(base, head), make_measurement((0.1,) * 4)) == ()


def test_no_layer_is_told_where_the_sides_have_other_runtimes() -> None:
    base = make_build("a", tasks=[make_task("conv", 1.0)])
    head = msgspec.structs.replace(make_build("b"), runtime="library")
    assert operator_differences(make_builds(base, head), make_measurement((0.1,) * 4)) == ()


def test_the_same_code_timed_on_one_side_alone_is_no_difference() -> None:
    base = make_build("a", tasks=[make_task("conv", 1.0), make_task("mul", 2.0)])
    tasks = [make_task("conv", None), make_task("mul", 3.0, rid="other")]
    head = make_build("b", tasks=tasks)
    found = operator_differences(make_builds(base, head), make_measurement((0.1,) * 4))
    assert [(each.name, each.is_alone) for each in found] == [("mul", True)]


def test_after_a_clear_fail_the_other_cell_has_its_share_of_the_error() -> None:
    """Slow enough for the whole error, and not for half of it."""
    noise = (0.004, -0.004, 0.002, -0.002, 0.001, -0.001)
    alone, shared = (bounds(noise, analyses=3, cells=cells).low for cells in (1, 2))
    middle = math.log1p(0.03) - (alone + shared) / 2
    doubtful = make_measurement([middle + each for each in noise])
    other = Cell(model="models/other.onnx", target=TARGET)

    def decided(beside: float) -> list[str | None]:
        clear = make_measurement([beside + each for each in noise], cell=other)
        builds = (
            make_builds(make_build("a"), make_build("b")),
            make_builds(make_build("a"), make_build("b"), other),
        )
        run = MeasurementRun(device=DEVICE, builds=builds, cells=(doubtful, clear))
        return [each.decision for each in compare(run, GateConfig())]

    assert decided(0.2) == ["fail", "fail"]
    assert decided(0.0) == ["undecided", "pass"]


seconds = st.floats(0.1, 1e4)


def test_hopeless_is_more_than_four_times_what_can_be_paid_for() -> None:
    assert is_hopeless(25, 6)
    assert not is_hopeless(24, 6)
    assert not is_hopeless(None, 6)


def test_analyses_that_do_not_fit_the_budget_are_dropped_before_the_start() -> None:
    assert affordable_analyses(100.0, 10.0) == (4, 6, 9)
    assert affordable_analyses(90.0, 10.0) == (4, 6, 9)
    assert affordable_analyses(1.0, 10.0) == (4,)


@given(seconds, seconds)
def test_analyses_are_the_first_planned_ones_and_fit_but_for_the_very_first(
    budget: float, launch: float
) -> None:
    analyses = affordable_analyses(budget, launch)
    assert analyses == PLANNED[: len(analyses)]
    assert analyses
    assert all(count * launch <= budget for count in analyses[1:])


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=6))
def test_any_effects_that_a_file_may_hold_make_an_interval_of_numbers(effects: list[float]) -> None:
    pair = make_builds(make_build("a"), make_build("b"))
    (found,) = compare(make_run(make_measurement(effects), pair), GateConfig())
    change = found.change_percent
    assert change is not None
    assert -100 <= change.low <= change.center <= change.high < math.inf
