from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.measured_cells import make_build, make_builds, make_measurement, make_run
from tunegate.artifacts.measurements import CellMeasurement, Metric
from tunegate.errors import MeasurementError
from tunegate.measure.measure_cells import scored
from tunegate.system.progress.shown_progress import PlainLog


class ByName:
    def score(self, artifact: Path) -> float:
        if artifact.name == "broken":
            message = "boom"
            raise MeasurementError(message)
        return {"a": 0.5, "b": 0.25}[artifact.name]


def cell(tmp_path: Path, base: str | None, head: str, **fields: object) -> CellMeasurement:
    builds = make_builds(make_build(base) if base else None, make_build(head))
    run = make_run(make_measurement((0.0, 0.0), **fields), builds)
    with (tmp_path / "log").open("w") as log:
        return scored(run, out=tmp_path, scorer=ByName(), progress=PlainLog(log)).cells[0]


def test_both_sides_are_scored(tmp_path: Path) -> None:
    assert cell(tmp_path, "a", "b").metric == Metric(base=0.5, head=0.25)


def test_a_new_model_has_a_head_only(tmp_path: Path) -> None:
    assert cell(tmp_path, None, "b").metric == Metric(head=0.25)


def test_a_command_that_fails_is_the_problem_of_its_cell(tmp_path: Path) -> None:
    assert cell(tmp_path, "a", "broken").metric == Metric(problem="boom")


@pytest.mark.parametrize("stopped", ["identical", "error"])
def test_what_does_not_differ_or_was_not_built_is_not_scored(tmp_path: Path, stopped: str) -> None:
    assert cell(tmp_path, "a", "b", stopped=stopped).metric is None


def test_without_a_command_nothing_changes(tmp_path: Path) -> None:
    run = make_run(make_measurement((0.0, 0.0)), make_builds(make_build("a"), make_build("b")))
    with (tmp_path / "log").open("w") as log:
        assert scored(run, out=tmp_path, scorer=None, progress=PlainLog(log)) is run
