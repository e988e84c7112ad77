"""What a run has spent is remembered, also where it comes to no verdict."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest

from tests.support import reports
from tests.support.measured_cells import make_context
from tests.support.workspace import Workspace
from tunegate.artifacts import artifact_io
from tunegate.artifacts.artifact_io import digest_of
from tunegate.artifacts.history import HistoryEntry
from tunegate.cli.handlers.run_history import remembered_before_plan, remembered_without_end
from tunegate.config import CacheConfig, Config, ModelConfig, TargetConfig
from tunegate.errors import CancelledError, EnvironmentUnfitError
from tunegate.system.cache.history_log import read_history
from tunegate.system.git.repository import GitRepository
from tunegate.system.progress.shown_progress import PlainLog
from tunegate_cache.stores.files import FileStore

CONFIG = Config(
    models=(ModelConfig(path="models/*.onnx"),),
    targets=(TargetConfig(name="cpu", usd_per_hour=3.6),),
    cache=CacheConfig(url="cache", mode="rw"),
)


def remembered(place: Path, ending: BaseException | None) -> tuple[HistoryEntry, ...]:
    """The history after a run that has tuned, and ended so."""
    workspace = Workspace(place / "w")
    out = place / "out"
    out.mkdir()
    report = reports.slowed()
    planned = report.plan
    assert planned is not None
    tuned = [msgspec.structs.replace(each, plan=digest_of(planned)) for each in report.outcomes]

    def run() -> None:
        for outcome in tuned:
            artifact_io.write(out / f"outcome-{outcome.shard}.json", outcome)
        if ending is not None:
            raise ending

    with remembered_without_end(
        planned,
        context=make_context(out, PlainLog(io.StringIO())),
        config=CONFIG,
        repository=GitRepository(workspace.root),
    ):
        run()
    return history(place)


def history(place: Path) -> tuple[HistoryEntry, ...]:
    return read_history(FileStore(place / "w" / "cache"), "main", 10).entries


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        (CancelledError("cancelled: what lies in /builds/7/out is kept"), "cancelled"),
        (KeyboardInterrupt(), "cancelled"),
        (EnvironmentUnfitError("the GPU is lost"), "aborted"),
        (ZeroDivisionError(), "aborted"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_run_that_ends_early_leaves_a_line_with_what_it_spent(
    tmp_path: Path, ending: BaseException, status: str
) -> None:
    with pytest.raises(type(ending)):
        remembered(tmp_path, ending)
    (line,) = history(tmp_path)
    assert "/builds" not in line.reason
    (outcome,) = reports.slowed().outcomes
    assert (line.status, line.head_ms) == (status, None)
    assert line.cost is not None
    assert line.cost.seconds == pytest.approx(outcome.spent.seconds)
    assert line.trials == sum(task.trials for task in outcome.tasks)


def test_a_run_that_comes_to_its_end_is_remembered_with_its_verdict_alone(tmp_path: Path) -> None:
    assert remembered(tmp_path, None) == ()


def test_a_disk_that_lost_the_outcomes_does_not_hide_what_ended_the_run(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "outcome-9.json").write_text("{")
    with (
        pytest.raises(EnvironmentUnfitError, match="the GPU is lost"),
        remembered_without_end(
            reports.slowed().plan,  # type: ignore[arg-type]  # it has one
            context=make_context(tmp_path / "out", PlainLog(io.StringIO())),
            config=CONFIG,
            repository=GitRepository(Workspace(tmp_path / "w").root),
        ),
    ):
        raise EnvironmentUnfitError("the GPU is lost")


@pytest.mark.parametrize(("least_seconds", "lines"), [(0.0, ["cancelled"]), (60.0, [])])
def test_a_run_that_ends_before_its_plan_leaves_a_line_if_it_took_time(
    tmp_path: Path, least_seconds: float, lines: list[str]
) -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        remembered_before_plan(
            reports.slowed().changes,
            context=make_context(tmp_path, PlainLog(io.StringIO())),
            config=CONFIG,
            repository=GitRepository(Workspace(tmp_path / "w").root),
            least_seconds=least_seconds,
        ),
    ):
        raise KeyboardInterrupt
    found = history(tmp_path)
    assert [line.status for line in found] == lines
    assert all(line.cost is not None and line.cost.gate_seconds > 0 for line in found)


def test_what_opening_and_planning_took_is_counted_where_a_run_ends_after_its_plan(
    tmp_path: Path,
) -> None:
    report = reports.slowed()
    assert report.plan is not None
    context = make_context(tmp_path, PlainLog(io.StringIO()))
    repository = GitRepository(Workspace(tmp_path / "w").root)
    with remembered_before_plan(
        report.changes, context=context, config=CONFIG, repository=repository
    ) as began:
        pass
    with (
        pytest.raises(KeyboardInterrupt),
        remembered_without_end(
            report.plan,
            context=context,
            config=CONFIG,
            repository=repository,
            before=(),
            began=began - 1000,
        ),
    ):
        raise KeyboardInterrupt
    (line,) = history(tmp_path)
    assert line.cost is not None
    assert line.cost.gate_seconds > 1000
    assert line.cost.gate_usd == pytest.approx(line.cost.gate_seconds * 3.6 / 3600)
