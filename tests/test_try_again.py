"""A failed test is tried once more, alone: what a run of a real project says, and its exit code."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = """\
import pathlib, pytest

@pytest.mark.parametrize("name", {names})
def test_it(name):
    runs = pathlib.Path(name)
    runs.write_text((runs.read_text() if runs.exists() else "") + "x")
    assert not name.startswith("broken")
    assert name.startswith("good") or len(runs.read_text()) > 1
"""


def retry(project: Path, *names: str, workers: int = 0) -> tuple[int, str, dict[str, int]]:
    """Returns the exit code, what was printed, and how often each test ran."""
    (project / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    (project / "test_it.py").write_text(TESTS.format(names=names))
    line = [sys.executable, "-m", "tests.support.try_again", "-p", "xdist", f"-n{workers}"]
    done = subprocess.run(
        [*line, "--dist", "worksteal", "--rootdir", str(project)],
        cwd=project,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    runs = {name: len((project / name).read_text()) for name in names if (project / name).exists()}
    return done.returncode, done.stdout.replace("test_it.py::", ""), runs


def test_nothing_is_tried_again_where_all_pass(tmp_path: Path) -> None:
    code, said, runs = retry(tmp_path, "good")
    assert (code, runs) == (0, {"good": 1})
    assert "try_again" not in said


def test_one_that_passes_alone_is_named_as_flaky(tmp_path: Path) -> None:
    code, said, runs = retry(tmp_path, "good", "flaky [b]", "flaky 2")
    assert (code, runs) == (0, {"good": 1, "flaky [b]": 2, "flaky 2": 2})
    expected = ["try_again: FLAKY: test_it[flaky 2]", "try_again: FLAKY: test_it[flaky [b]]"]
    assert said.splitlines()[-2:] == expected


def test_one_that_fails_twice_fails_the_run(tmp_path: Path) -> None:
    code, said, runs = retry(tmp_path, "broken", "flaky", "good", workers=2)
    assert (code, runs) == (1, {"broken": 2, "flaky": 2, "good": 1})
    expected = ["try_again: FAILED twice: test_it[broken]", "try_again: FLAKY: test_it[flaky]"]
    assert said.splitlines()[-2:] == expected


def test_many_failures_are_no_accident(tmp_path: Path) -> None:
    code, said, runs = retry(tmp_path, *(f"flaky{number}" for number in range(11)))
    assert (code, set(runs.values())) == (1, {1})
    assert "try_again" not in said


def test_a_file_that_cannot_be_imported_fails_at_once(tmp_path: Path) -> None:
    (tmp_path / "test_broken.py").write_text("import nothing_of_this_name")
    code, said, _ = retry(tmp_path, "good")
    assert code not in {0, 5}
    assert "try_again" not in said
