from __future__ import annotations

import math

import msgspec
import pytest

from study_tests.design.synthetic import REFERENCE_MS, cell
from tunegate_study.design.measured import measured_cells, without
from tunegate_study.studies import StudyLaunch


def test_a_slow_moment_of_the_machine_is_no_scatter_of_a_cell() -> None:
    """Launches while all was twice as slow: the times scatter, the effects do not."""
    steady = cell({"model": "a", "layout": "nhwc"}, [0.1, 0.1, 0.1, 0.1])
    slow = tuple(
        StudyLaunch(round=each.round, effect=0.1, ms=2 * each.ms, reference_ms=2 * REFERENCE_MS)
        for each in steady.launches[:2]
    )
    disturbed = msgspec.structs.replace(steady, launches=(*slow, *steady.launches[2:]))
    (found,) = measured_cells([disturbed])
    assert found.paired.variance < 1e-7
    assert found.alone.variance > 0.03


def test_the_time_is_in_milliseconds_of_the_reference() -> None:
    (found,) = measured_cells([cell({"model": "a"}, [0.2, 0.2])])
    assert math.exp(found.paired.mean) == pytest.approx(REFERENCE_MS * math.exp(0.2))


def test_a_cell_of_one_launch_is_not_measured() -> None:
    assert measured_cells([cell({"model": "a"}, [0.2])]) == ()


def test_the_other_axes_are_left() -> None:
    assert without({"a": "1", "b": "2"}, ["a"]) == {"b": "2"}
