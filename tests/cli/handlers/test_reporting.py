import io
import json
import re
import time
from pathlib import Path

import msgspec
import pytest

from tests.ci.gitlab.test_event import REQUEST
from tests.support import report_parts as parts
from tests.support import reports
from tests.support.git_repository import Checkout, new_repository
from tests.support.measured_cells import make_changes, make_context
from tests.support.plans import plan_of
from tests.support.present import present
from tests.support.report_parts import change, changes
from tests.support.small_onnx import conv_model, save
from tests.support.tuning_tasks import make_task
from tests.support.workspace import NOT_COMPILED, Workspace
from tunegate.artifacts import artifact_io
from tunegate.artifacts.artifact_io import digest_of
from tunegate.artifacts.changes import ChangeSet, Revisions
from tunegate.artifacts.history import HistoryEntry
from tunegate.artifacts.verdicts import Verdict, WarmedModel
from tunegate.cli.handlers import run_history
from tunegate.cli.handlers.doctor import Diagnosis, show_diagnosis
from tunegate.cli.handlers.doctor_checks import GatedModel, Setting
from tunegate.cli.handlers.reporting import finish, write_json, write_renderings
from tunegate.cli.handlers.run import tell_no_base, warn_of
from tunegate.cli.handlers.steps import pushed_revisions, show_plan
from tunegate.cli.handlers.table import Output, show_lines, show_table
from tunegate.cli.main import main
from tunegate.config import CacheConfig, Config, ModelConfig, TargetConfig
from tunegate.errors import CancelledError, EnvironmentUnfitError
from tunegate.review.gate_rules import Waivers
from tunegate.settings import Settings
from tunegate.system.cache.history_log import read_history
from tunegate.system.git.repository import GitRepository
from tunegate.system.machine.health import HealthCheck
from tunegate.system.output.log_file import talking
from tunegate.system.progress.shown_progress import PlainLog
from tunegate_cache.stores.files import FileStore

REPORT = reports.slowed()


def test_a_report_is_written_in_all_its_forms(tmp_path: Path) -> None:
    write_renderings(REPORT, tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"report.md", "report.html", "junit.xml", "sarif.json"} <= names


@pytest.mark.parametrize("exit_code", [0, 1, 3])
def test_the_exit_code_is_that_of_the_verdict(tmp_path: Path, exit_code: int) -> None:
    verdict = msgspec.structs.replace(REPORT.verdict, exit_code=exit_code)
    report = msgspec.structs.replace(REPORT, verdict=verdict)
    assert finish(report, Settings(out=tmp_path)) == exit_code


def test_talk_goes_to_stderr_and_only_json_that_was_asked_for_to_stdout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finish(REPORT, Settings(out=tmp_path))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert str(tmp_path / "report.html") in shown.err
    finish(REPORT, Settings(out=tmp_path, as_json=True))
    assert json.loads(capsys.readouterr().out)["status"] == REPORT.verdict.status


@pytest.mark.parametrize(
    ("quiet", "exit_code", "lines"), [(True, 1, 1), (True, 0, 0), (False, 1, 0)]
)
def test_a_quiet_command_says_what_its_exit_code_is_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, quiet: bool, exit_code: int, lines: int
) -> None:
    verdict = msgspec.structs.replace(REPORT.verdict, exit_code=exit_code)
    with talking() as talk:
        talk.begin(quiet=quiet, verbose=False, log=None)
        finish(msgspec.structs.replace(REPORT, verdict=verdict), Settings(out=tmp_path))
    shown = capsys.readouterr().err
    told = [line for line in shown.splitlines() if line.startswith("tunegate: fail: ")]
    assert len(told) == lines
    assert (len(shown.splitlines()) == lines) == quiet


def test_what_was_sent_to_a_pipe_is_read_like_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_json(make_changes())
    file = tmp_path / "changes.json"
    file.write_text(capsys.readouterr().out)
    assert artifact_io.read(file, ChangeSet) == make_changes()


DIAGNOSIS = Diagnosis(
    checks=(
        HealthCheck("cache", ok=False, detail="/tmp/[/b]: install tunegate[tvm]", section="cache"),
        HealthCheck("python", ok=True, detail="3.12.1", section="machine"),
        HealthCheck("load", ok=True, detail="load 8.0: wait", section="machine", warns=True),
        HealthCheck("tvm", ok=True, detail="apache-tvm 9", section="runtimes"),
        HealthCheck("linker", ok=True, detail="/usr/bin/g++", section="runtimes"),
        HealthCheck("shapes", ok=True, detail="all have a size", section="models"),
    ),
    settings=(Setting("gate.seconds", "240.0", "default"), Setting("dims.n", "3", "file")),
    models=(
        GatedModel(
            model="[red].onnx",
            entry="*.onnx",
            targets=("cpu", "gpu"),
            state="committed",
            tasks=(
                WarmedModel(model="[red].onnx", target="cpu", tasks=3, known_before=1, known=1),
            ),
        ),
    ),
)


def test_what_is_wrong_comes_last_and_nothing_is_markup(capsys: pytest.CaptureFixture[str]) -> None:
    show_diagnosis(DIAGNOSIS, is_whole=False)
    shown = capsys.readouterr().out
    assert shown.index("all have a size") < shown.index("/tmp/[/b]: install tunegate[tvm]")
    assert shown.endswith(
        "-v shows each check, 1 model, 2 settings\n"
        "2 tasks are untuned: tunegate warm tunes what matters\n"
        "to mend: cache\n"
    )


def test_a_part_that_is_fine_is_one_line_and_a_warning_stands_among_what_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_diagnosis(DIAGNOSIS, is_whole=False)
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    parts, rest = lines[2:5], lines[5:]
    assert [" ".join(line.split()) for line in parts] == [
        "machine ok python 3.12.1",
        "runtimes ok tvm, linker",
        "models ok 1 model, 1 of 3 tasks tuned; shapes all have a size",
    ]
    expected = [["cache", "no"], ["load", "warn"]]
    assert [line.split()[:2] for line in rest if line[:4] in ("cach", "load")] == expected
    assert "[red].onnx" not in "".join(lines)


def test_the_last_line_agrees_with_those_above_it_and_no_line_is_too_wide(
    capsys: pytest.CaptureFixture[str],
) -> None:
    slow = HealthCheck("load", ok=True, detail="8.0: wait " * 30, section="machine", warns=True)
    absent = HealthCheck(
        "openvino", ok=True, detail="optional: pip", section="runtimes", is_absent=True
    )
    show_diagnosis(Diagnosis(checks=(DIAGNOSIS.checks[1],)), is_whole=False)
    assert capsys.readouterr().out.splitlines()[-1] == "All is well."
    show_diagnosis(
        Diagnosis(checks=(DIAGNOSIS.checks[1],), models=DIAGNOSIS.models), is_whole=False
    )
    assert capsys.readouterr().out.splitlines()[-1] == "All works."
    show_diagnosis(Diagnosis(checks=(slow, absent)), is_whole=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "Nothing is broken. Look at: load"
    assert max(map(len, lines)) <= 100
    assert [line.split() for line in lines if "openvino" in line] == [
        ["runtimes", "absent", "openvino:", "optional,", "not", "installed"]
    ]


def test_models_that_are_not_as_committed_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    (model,) = DIAGNOSIS.models
    changed = msgspec.structs.replace(model, state="not committed yet")
    show_diagnosis(msgspec.structs.replace(DIAGNOSIS, models=(changed,)), is_whole=False)
    assert "[red].onnx" in capsys.readouterr().out


class Closed(io.StringIO):
    """A pipe whose reader has gone away."""

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_reader_that_has_gone_away_does_not_end_the_process() -> None:
    with pytest.raises(BrokenPipeError):
        Output(file=Closed()).print("a line")


def test_a_cell_from_a_store_is_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    show_table("[b]title", ("column",), [("[red]record[/red]",)])
    show_lines(["[link=x]line[/link]"])
    shown = capsys.readouterr().out
    assert "[red]record[/red]" in shown
    assert "[link=x]line[/link]" in shown


WIDE = ("models/encoder.onnx", "cpu: a processor with a long name", 230, 77, "x" * 20)


@pytest.mark.parametrize("width", [40, 80])
def test_a_narrow_terminal_gets_lines_and_no_word_is_folded(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    show_table("", ("model", "target", "records", "tasks", "digest"), [WIDE])
    show_table(
        "", ("check", "detail"), [("cache", "a place that holds nothing of ours yet, it says")]
    )
    shown = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    words = {word for line in shown.splitlines() for word in line.replace(",", " ").split()}
    assert {"models/encoder.onnx", "processor", "x" * 20, "nothing"} <= words
    assert max(map(len, shown.splitlines())) <= width


# What a run has spent is remembered, also where it comes to no verdict.

CONFIG = Config(
    models=(ModelConfig(path="models/*.onnx"),),
    targets=(TargetConfig(name="cpu", usd_per_hour=3.6),),
    cache=CacheConfig(url="cache", mode="rw"),
)


def remembered(place: Path, ending: BaseException | None) -> tuple[HistoryEntry, ...]:
    """The history after a run that has tuned, and ended so."""
    workspace = Workspace(place / "w")
    out = place / "out"
    out.mkdir(exist_ok=True)
    report = reports.slowed()
    planned = present(report.plan)
    tuned = [msgspec.structs.replace(each, plan=digest_of(planned)) for each in report.outcomes]

    def run() -> None:
        for outcome in tuned:
            artifact_io.write(out / f"outcome-{outcome.shard}.json", outcome)
        if ending is not None:
            raise ending

    with run_history.remembered_without_end(
        planned,
        context=make_context(out, PlainLog(io.StringIO())),
        config=CONFIG,
        repository=GitRepository(workspace.root),
    ):
        run()
    return history(place)


def history(place: Path) -> tuple[HistoryEntry, ...]:
    return read_history(FileStore(place / "w" / "cache"), "main", 10, int(time.time())).entries


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
    assert present(line.cost).seconds == pytest.approx(outcome.spent.seconds)
    assert line.trials == sum(task.trials for task in outcome.tasks)


def test_a_disk_that_lost_the_outcomes_does_not_hide_what_ended_the_run(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "outcome-9.json").write_text("{")
    with pytest.raises(EnvironmentUnfitError, match="the GPU is lost"):
        remembered(tmp_path, EnvironmentUnfitError("the GPU is lost"))


@pytest.mark.parametrize(("least_seconds", "lines"), [(0.0, ["cancelled"]), (60.0, [])])
def test_a_run_that_ends_before_its_plan_leaves_a_line_if_it_took_time(
    tmp_path: Path, least_seconds: float, lines: list[str]
) -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        run_history.remembered_before_plan(
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


def test_opening_and_planning_count_where_a_run_ends_after_its_plan(tmp_path: Path) -> None:
    report = reports.slowed()
    context = make_context(tmp_path, PlainLog(io.StringIO()))
    repository = GitRepository(Workspace(tmp_path / "w").root)
    with run_history.remembered_before_plan(
        report.changes, context=context, config=CONFIG, repository=repository
    ) as began:
        pass
    with (
        pytest.raises(KeyboardInterrupt),
        run_history.remembered_without_end(
            present(report.plan),
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


def test_what_the_command_line_names_counts() -> None:
    assert operands(Settings(base="v1", head="v2"), "refs/heads/main") == ("v1", "v2")


JOB = {**REQUEST, "GITLAB_CI": "true", "CI_JOB_URL": "https://gitlab.example/acme/vision/-/jobs/5"}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return new_repository(tmp_path / "vision")


def test_a_job_says_its_change_its_page_and_its_repository(checkout: Checkout) -> None:
    checkout.git("remote", "add", "origin", "https://u:secret@git.example/acme/vision.git")
    commit = checkout.commit({"a": b"1"})
    checkout.git("tag", "v1")
    facts = run_history.run_facts(GitRepository(checkout.path), commit, at=9, variables=JOB)
    assert (facts.at, facts.release, facts.repository) == (9, "v1", "acme/vision")
    assert facts.change == int(JOB["CI_MERGE_REQUEST_IID"])
    assert facts.is_aside
    assert facts.run_url.startswith("https://")
    assert facts.authored == int(checkout.git("show", "-s", "--format=%at", commit))


def test_a_head_of_a_local_branch_is_beside_the_default_one(checkout: Checkout) -> None:
    """No number of a pull request says so where somebody tries things at a desk."""
    on_main = checkout.commit({"a": b"1"})
    checkout.git("checkout", "-q", "-b", "topic")
    topic = checkout.commit({"a": b"2"})
    repository = GitRepository(checkout.path)
    aside = [
        run_history.run_facts(repository, each, at=9, variables={}).is_aside
        for each in (on_main, topic)
    ]
    assert aside == [False, True]


def test_content_that_is_no_commit_was_written_at_no_time(checkout: Checkout) -> None:
    checkout.commit({"a": b"1"})
    facts = run_history.run_facts(GitRepository(checkout.path), "not a commit", at=9, variables={})
    assert facts.authored is None
    assert not facts.is_aside


@pytest.mark.parametrize("page", ["javascript:alert(1)", "https://u:p@ci/1", "https://ci/\"'><b>"])
def test_a_page_that_nobody_should_follow_is_left_out(checkout: Checkout, page: str) -> None:
    commit = checkout.commit({"a": b"1"})
    variables = {**JOB, "CI_JOB_URL": page}
    facts = run_history.run_facts(GitRepository(checkout.path), commit, at=9, variables=variables)
    assert facts.run_url == ""


# Steps that a job runs alone.


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A repository whose last commit has changed the weights of its only model."""
    workspace = Workspace(tmp_path / "w", NOT_COMPILED)
    save(conv_model(seed=2, channels=16, out=32, size=14), workspace.root / "models" / "m.onnx")
    workspace.commit()
    return workspace


def detect(workspace: Workspace, *line: str) -> int:
    where = ("--repository", str(workspace.root), "--out", str(workspace.root / ".tunegate"))
    return main(["detect", *where, "--base", "HEAD~1", *line])


def test_what_a_change_touches_is_shown_and_written(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert detect(workspace) == 0
    shown = capsys.readouterr().out
    assert "models/m.onnx: modified, weights-only" in shown
    assert "0 unchanged" in shown
    written = artifact_io.read(workspace.root / ".tunegate" / "changes.json", ChangeSet)
    assert [change.path for change in written.models] == ["models/m.onnx"]


def test_json_is_the_artifact_and_nothing_else(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert detect(workspace, "--json") == 0
    (change,) = json.loads(capsys.readouterr().out)["models"]
    assert (change["kind"], change["change"]) == ("modified", "weights-only")


def test_the_hook_of_a_push_writes_nothing(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert detect(workspace, "--pushed") == 0
    assert "models/m.onnx: modified, weights-only" in capsys.readouterr().out
    assert not (workspace.root / ".tunegate").exists()


def test_the_two_verdicts_make_a_third(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, status, code in (("a", "fail", 1), ("b", "pass", 0)):
        finding = parts.finding(status, f"seen by {name}")  # type: ignore[arg-type]
        artifact_io.write(tmp_path / f"{name}.json", parts.verdict(status, code, finding))  # type: ignore[arg-type]
    line = ["confirm", str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    assert main([*line, "--out", str(tmp_path / "out")]) == 0
    assert artifact_io.read(tmp_path / "out" / "verdict.json", Verdict).status == "pass"
    assert "not confirmed on a second machine: seen by b" in capsys.readouterr().out


def test_waivers_that_waive_nothing_are_told_first_on_one_line_each() -> None:
    told = io.StringIO()
    warn_of(Waivers(notes=("nothing is waived: on the base, …", "a \x1b[31mred")), PlainLog(told))
    first, second = told.getvalue().splitlines()
    assert "warning: nothing is waived: on the base, …" in first
    assert "\x1b" not in second


@pytest.mark.parametrize(
    ("models", "counted"), [(1, "the model counts as new"), (3, "all 3 models count as new")]
)
def test_a_run_without_a_base_says_why_first(models: int, counted: str) -> None:
    told = io.StringIO()
    revisions = Revisions(base=None, head="a" * 40, reason="this is the first commit")
    new = [change(f"{n}.onnx", base=None) for n in range(models)]
    tell_no_base(changes(*new, revisions=revisions), PlainLog(told))
    assert told.getvalue().endswith(f"no base: this is the first commit, so {counted}\n")


def test_an_unreadable_cache_is_a_line_of_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    planned = plan_of([make_task("a")])
    refused = "cache: s3://b: AccessDenied; to list is not tried again in this run"
    use = msgspec.structs.replace(planned.resolution.cache, notes=(refused,))
    resolution = msgspec.structs.replace(planned.resolution, cache=use)
    show_plan(msgspec.structs.replace(planned, resolution=resolution))
    assert f"  note: {refused}" in capsys.readouterr().out.splitlines()
