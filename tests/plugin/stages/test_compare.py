from __future__ import annotations

from tests.support.measured_cells import make_build, make_builds, make_measurement, make_task
from tunegate.stages.compare import differences


def test_times_inside_the_model_decide_what_holds_a_difference() -> None:
    head = make_build("b", tasks=[make_task("conv", 9.0, source="transfer")])
    before = {"conv": 2.0, "pool": 1.0, "relu": 0.5, "gone": 0.3}
    after = {"conv": 3.0, "pool": 1.02, "relu": 0.5, "new": 0.4}
    measured = make_measurement((0.1,) * 4, task_ms={"base": before, "head": after})
    found = differences(make_builds(make_build("a"), head), measured)
    assert [(d.name, d.base_ms, d.head_ms) for d in found] == [
        ("conv", 2.0, 3.0),
        ("new", None, 0.4),
        ("gone", 0.3, None),
    ]
    assert [d.source for d in found] == ["transfer", "library", "library"]


def test_without_times_inside_the_model_those_of_tuning_are_used() -> None:
    builds = make_builds(
        make_build("a", tasks=[make_task("conv", 1.0)]),
        make_build("b", tasks=[make_task("conv", 2.0, rid="other")]),
    )
    (found,) = differences(builds, make_measurement((0.1,) * 4))
    assert (found.base_ms, found.head_ms) == (1.0, 2.0)
