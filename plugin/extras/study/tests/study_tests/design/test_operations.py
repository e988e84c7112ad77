from __future__ import annotations

from study_tests.design.synthetic import cell
from tunegate_study.design.measured import measured_cells
from tunegate_study.design.operations import slower_with_less


def test_less_work_that_takes_longer_is_told() -> None:
    small = cell({"model": "small", "variant": "given", "runtime": "tvm"}, [0.30, 0.31, 0.30], 1e6)
    large = cell({"model": "large", "variant": "given", "runtime": "tvm"}, [0.0, 0.01, 0.0], 4e6)
    (found,) = slower_with_less(measured_cells([small, large]))
    assert (found.fewer, found.more, found.operations_percent) == ("small", "large", -75.0)
    assert 25 < found.time_percent.low < found.time_percent.center < 45
    assert found.setting == {"runtime": "tvm"}


def test_a_pruned_variant_is_held_against_its_own_model() -> None:
    dense = cell({"model": "m", "variant": "given", "runtime": "tvm"}, [0.0, 0.01, 0.0], 4e6)
    pruned = cell({"model": "m", "variant": "half", "runtime": "tvm"}, [0.2, 0.21, 0.2], 2e6)
    (found,) = slower_with_less(measured_cells([dense, pruned]))
    assert (found.fewer, found.more) == ("m half", "m")


def test_what_is_faster_unclear_or_not_counted_is_not_told() -> None:
    for effects, count in (([-0.5, -0.51], 1e6), ([0.0, 0.9], 1e6), ([0.5, 0.51], None)):
        few = cell({"model": "few", "variant": "given", "runtime": "tvm"}, effects, count)
        many = cell({"model": "many", "variant": "given", "runtime": "tvm"}, [0.0, 0.01], 9e6)
        assert slower_with_less(measured_cells([few, many])) == ()


def test_other_settings_are_not_compared() -> None:
    few = cell({"model": "few", "variant": "given", "runtime": "openvino"}, [0.5, 0.51], 1e6)
    many = cell({"model": "many", "variant": "given", "runtime": "tvm"}, [0.0, 0.01], 9e6)
    assert slower_with_less(measured_cells([few, many])) == ()
