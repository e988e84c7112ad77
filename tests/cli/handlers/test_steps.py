import io
import json
from pathlib import Path

import msgspec
import pytest

from tests.support import report_parts as parts
from tests.support.plans import plan_of
from tests.support.report_parts import change, changes
from tests.support.small_onnx import conv_model, save
from tests.support.tuning_tasks import make_task
from tests.support.workspace import NOT_COMPILED, Workspace
from tunegate.artifacts import artifact_io
from tunegate.artifacts.changes import ChangeSet, Revisions
from tunegate.artifacts.verdicts import Verdict
from tunegate.cli.handlers.run import tell_no_base, warn_of
from tunegate.cli.handlers.steps import show_plan
from tunegate.cli.main import main
from tunegate.review.gate_rules import Waivers
from tunegate.system.progress.shown_progress import PlainLog


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


def test_a_cache_that_refuses_to_be_read_is_a_line_of_the_plan(
    capsys: pytest.CaptureFixture[str],
) -> None:
    planned = plan_of([make_task("a")])
    refused = "cache: s3://b: AccessDenied; to list is not tried again in this run"
    use = msgspec.structs.replace(planned.resolution.cache, notes=(refused,))
    resolution = msgspec.structs.replace(planned.resolution, cache=use)
    show_plan(msgspec.structs.replace(planned, resolution=resolution))
    assert f"  note: {refused}" in capsys.readouterr().out.splitlines()
