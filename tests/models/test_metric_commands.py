"""Real commands over files that a test wrote: what they print, see, and are kept from."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.workspace import Workspace
from tunegate.errors import MeasurementError
from tunegate.models.metric_commands import MetricCommands
from tunegate.system.git.repository import GitRepository

MEASURE = """\
import pathlib, sys
import numpy as np
for file in sorted(pathlib.Path(sys.argv[1]).glob("*.npz")):
    with np.load(file) as case:
        print(abs(case["candidate_0"] - case["reference_0"]).max())
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    found = Workspace(tmp_path_factory.mktemp("metric") / "checkout", "models: [{path: m}]\n")
    (found.root / "measure.py").write_text(MEASURE)
    found.commit()
    (found.root / "measure.py").write_text("raise SystemExit('that of the checkout')")
    return found


def cases(directory: Path, count: int = 3) -> Path:
    directory.mkdir()
    for number in range(count):
        arrays = {"reference_0": np.zeros(2), "candidate_0": np.full(2, number / 4)}
        np.savez(directory / f"case-{number:04}.npz", **arrays)  # type: ignore[arg-type]  # numpy's
    return directory


def scores(
    workspace: Workspace, tmp_path: Path, command: str, limit_seconds: float = 120.0
) -> tuple[float, ...]:
    scorer = MetricCommands(
        GitRepository(workspace.root),
        "HEAD",
        checkout=workspace.root,
        scratch=tmp_path / "work",
        limit_seconds=limit_seconds,
    )
    return scorer.scores(command, cases(tmp_path / "cases"))


def test_the_base_s_program_scores_each_case(workspace: Workspace, tmp_path: Path) -> None:
    assert scores(workspace, tmp_path, f"{sys.executable} measure.py") == (0.0, 0.25, 0.5)
    assert not (tmp_path / "cases").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("print(1)", "printed 1 words for 3 cases: one number for each"),
        ("print(1, 2, 'low')", "printed no finite number for case-0002.npz, but `low`"),
        ("print(1, 'nan', 3)", "printed no finite number for case-0001.npz, but `nan`"),
        ("raise SystemExit('no labels')", "exited with 1: no labels"),
        ("import time; time.sleep(60)", "did not end in 1 s"),
    ],
)
def test_what_says_nothing_of_a_case_is_one_line(
    workspace: Workspace, tmp_path: Path, text: str, said: str
) -> None:
    limit_seconds = 1.0 if "sleep" in text else 60.0
    with pytest.raises(MeasurementError) as caught:
        scores(workspace, tmp_path, f'{sys.executable} -c "{text}"', limit_seconds=limit_seconds)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_line_that_is_none_is_said(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="cannot be run"):
        scores(workspace, tmp_path, 'python "')


@pytest.mark.parametrize("before", ["", "--with="])
def test_paths_into_the_checkout_fail(workspace: Workspace, tmp_path: Path, before: str) -> None:
    with pytest.raises(MeasurementError, match=r"measure\.py lies in the checkout"):
        scores(workspace, tmp_path, f"{sys.executable} {before}{workspace.root}/measure.py")


def test_a_command_may_name_links_in_a_circle(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    command = f'{sys.executable} -c "print(1, 2, 3)" {tmp_path / "a"}'
    assert scores(workspace, tmp_path, command) == (1.0, 2.0, 3.0)


def test_a_command_sees_no_secret_and_works_outside_of_the_checkout(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.chdir(workspace.root)
    seen = tmp_path / "seen"
    text = (
        "import json, os; json.dump([os.getcwd(), dict(os.environ)], "
        f"open('{seen}', 'w')); print(1, 2, 3)"
    )
    assert scores(workspace, tmp_path, f'{sys.executable} -c "{text}"') == (1.0, 2.0, 3.0)
    directory, variables = json.loads(seen.read_text())
    assert Path(directory).is_relative_to(tmp_path / "work")
    assert "AWS_SECRET_ACCESS_KEY" not in variables
