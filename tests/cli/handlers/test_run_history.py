"""What a run has spent is remembered, also where it comes to no verdict."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest

from tests.ci.gitlab.test_event import REQUEST
from tests.support import reports
from tests.support.git_repository import Checkout, new_repository
from tests.support.measured_cells import make_context
from tests.support.workspace import Workspace
from tunegate.artifacts import artifact_io
from tunegate.artifacts.artifact_io import digest_of
from tunegate.artifacts.history import HistoryEntry
from tunegate.cli.handlers.run_history import (
    remembered_before_plan,
    remembered_without_end,
    run_facts,
)
from tunegate.cli.handlers.steps import pushed_revisions
from tunegate.config import CacheConfig, Config, ModelConfig, TargetConfig
from tunegate.errors import CancelledError, EnvironmentUnfitError
from tunegate.settings import Settings
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


PUSH = {"PRE_COMMIT_FROM_REF": "a" * 40, "PRE_COMMIT_TO_REF": "b" * 40}


def operands(settings: Settings, branch: str) -> tuple[str | None, str | None]:
    found = pushed_revisions(settings, {**PUSH, "PRE_COMMIT_REMOTE_BRANCH": branch}, "main")
    return found.base, found.head


def test_a_push_to_the_default_branch_is_compared_with_what_the_remote_has() -> None:
    assert operands(Settings(), "refs/heads/main") == ("a" * 40, "b" * 40)


@pytest.mark.parametrize("branch", ["refs/heads/topic", "refs/heads/x/main", "refs/tags/v1"])
def test_another_push_is_compared_with_where_its_branch_left_the_default_one(branch: str) -> None:
    assert operands(Settings(), branch) == (None, "b" * 40)


def test_a_run_of_two_references_is_about_them() -> None:
    assert operands(Settings(), "") == ("a" * 40, "b" * 40)


def test_what_the_command_line_names_counts() -> None:
    assert operands(Settings(base="v1", head="v2"), "refs/heads/main") == ("v1", "v2")


def test_a_run_by_hand_has_the_usual_revisions() -> None:
    assert pushed_revisions(Settings(), {}, "main") == Settings()


JOB = {**REQUEST, "GITLAB_CI": "true", "CI_JOB_URL": "https://gitlab.example/acme/vision/-/jobs/5"}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return new_repository(tmp_path / "vision")


def test_a_job_says_its_change_its_page_and_its_repository(checkout: Checkout) -> None:
    checkout.git("remote", "add", "origin", "https://u:secret@git.example/acme/vision.git")
    commit = checkout.commit({"a": b"1"})
    checkout.git("tag", "v1")
    facts = run_facts(GitRepository(checkout.path), commit, at=9, variables=JOB)
    assert (facts.at, facts.release, facts.repository) == (9, "v1", "acme/vision")
    assert facts.change == int(JOB["CI_MERGE_REQUEST_IID"])
    assert facts.is_aside
    assert facts.run_url.startswith("https://")
    assert facts.authored == int(checkout.git("show", "-s", "--format=%at", commit))


def test_outside_of_a_ci_the_directory_has_the_name(checkout: Checkout) -> None:
    commit = checkout.commit({"a": b"1"})
    facts = run_facts(GitRepository(checkout.path), commit, at=9, variables={})
    assert (facts.repository, facts.change, facts.run_url) == ("vision", None, "")


def test_a_head_of_a_local_branch_is_beside_the_default_one(checkout: Checkout) -> None:
    """No number of a pull request says so where somebody tries things at a desk."""
    on_main = checkout.commit({"a": b"1"})
    checkout.git("checkout", "-q", "-b", "topic")
    topic = checkout.commit({"a": b"2"})
    repository = GitRepository(checkout.path)
    aside = [run_facts(repository, each, at=9, variables={}).is_aside for each in (on_main, topic)]
    assert aside == [False, True]


def test_a_commit_that_was_not_pushed_yet_is_on_the_default_branch(checkout: Checkout) -> None:
    pushed = checkout.commit({"a": b"1"})
    checkout.git("update-ref", "refs/remotes/origin/main", pushed)
    ahead = checkout.commit({"a": b"2"})
    assert not run_facts(GitRepository(checkout.path), ahead, at=9, variables={}).is_aside


def test_content_that_is_no_commit_was_written_at_no_time(checkout: Checkout) -> None:
    checkout.commit({"a": b"1"})
    facts = run_facts(GitRepository(checkout.path), "not a commit", at=9, variables={})
    assert facts.authored is None
    assert not facts.is_aside


@pytest.mark.parametrize("page", ["javascript:alert(1)", "https://u:p@ci/1", "https://ci/\"'><b>"])
def test_a_page_that_nobody_should_follow_is_left_out(checkout: Checkout, page: str) -> None:
    commit = checkout.commit({"a": b"1"})
    variables = {**JOB, "CI_JOB_URL": page}
    facts = run_facts(GitRepository(checkout.path), commit, at=9, variables=variables)
    assert facts.run_url == ""
