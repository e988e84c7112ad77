import sys
from pathlib import Path

import pytest

from tests.support.measured_cells import make_build, make_builds, make_measurement, make_run
from tunegate.artifacts.measurements import CellMeasurement, Metric
from tunegate.errors import ConfigError, MeasurementError
from tunegate.measure.latency_commands import ScoringCommand
from tunegate.measure.measure_cells import score_cells
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
        return score_cells(run, out=tmp_path, scorer=ByName(), progress=PlainLog(log)).cells[0]


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
        assert score_cells(run, out=tmp_path, scorer=None, progress=PlainLog(log)) is run


def scoring_command_scored(program: str, directory: Path) -> float:
    return ScoringCommand(f'{sys.executable} -c "{program}"').score(directory)


def test_the_last_number_counts_and_the_artifact_is_the_last_argument(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("0.75")
    program = "import sys; print(1); print(open(sys.argv[-1] + '/x').read())"
    assert scoring_command_scored(program, tmp_path) == 0.75


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("pass", "printed no number"),
        ("print('nan')", "printed no number"),
        ("print('good')", "printed no number"),
        ("raise SystemExit('boom')", "exited with 1: boom"),
    ],
)
def test_a_command_that_gives_no_number_says_so(program: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match=said):
        scoring_command_scored(program, tmp_path)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("no-such-program --x", "no such program"),
        ("/etc/passwd", "not executable"),
        ("x" * 300, "no such program"),
        ("a 'b", "No closing quotation"),
        ("", "no such"),
    ],
)
def test_a_command_that_is_not_there_is_refused_before_anything_is_measured(
    line: str, why: str
) -> None:
    with pytest.raises(ConfigError, match=f"cannot be run .{why}"):
        ScoringCommand(line)
