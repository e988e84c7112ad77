import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.simulated.small_disk import mounted_disk
from tunegate import errors
from tunegate.cli.unexpected import as_full_disk
from tunegate.system.output.directory import opened_output, shared_output
from tunegate.system.output.owned_directory import LOCK, MARKER, is_marked_here

OF_THE_DOOR = {MARKER, LOCK, ".gitignore"}
PLANNING = {"tasks.json", "plan.json", "matrix.json", "outcome-0.json", "outcome-12-again.json"}
GATED = {"measurements.json", "verdict.json", "report.md", "report.html", "junit.xml", "sarif.json"}
OTHERS = {"changes.json", "notes.md", "outcome.txt"}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "checkout"
    root.mkdir()
    monkeypatch.chdir(root)
    git("init", "-q")
    return root


def git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True)


def visit(path: Path) -> None:
    with opened_output(path, "run"):
        pass


def names(out: Path) -> set[str]:
    return {path.name for path in out.iterdir() if path.is_file()} - OF_THE_DOOR


def filled(out: Path) -> Path:
    visit(out)
    for name in PLANNING | GATED | OTHERS:
        (out / name).touch()
    (out / "models").mkdir()
    return out


def test_a_new_directory_is_ours_and_git_ignores_it(checkout: Path) -> None:
    visit(checkout / "deep" / "out")
    assert is_marked_here(checkout / "deep" / "out")
    listed = subprocess.run(["git", "status", "--porcelain"], capture_output=True, check=True)
    assert listed.stdout == b""


def test_a_new_gate_keeps_the_plan_and_the_outcomes_it_works_from(tmp_path: Path) -> None:
    with opened_output(filled(tmp_path / "out"), "gate") as out:
        out.forget(since="gate")
        assert names(out.path) == OTHERS | PLANNING


def test_the_working_directory_is_emptied_but_links_in_it_are_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "model").touch()
    with opened_output(tmp_path / "out", "run") as out:
        (out.empty_workdir() / "linked").symlink_to(precious)
        assert list(out.empty_workdir().iterdir()) == []
    assert (precious / "model").exists()


@pytest.mark.parametrize("name", ["notes.md", "plan.json", ".git", "verdict.json", "work"])
def test_what_was_there_before_us_is_not_ours(name: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text('{"format_version": "1.2"}')
    with pytest.raises(errors.OutputError, match=r"not made by tunegate, and not empty"):
        visit(tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [name]


@pytest.mark.parametrize("out", [".", "/", "~", "src"])
def test_a_place_of_the_users_own_is_harmless(
    out: str, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (checkout / "src").mkdir()
    (checkout / "src" / "main.py").touch()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(errors.OutputError, match="not made by tunegate"):
        visit(Path(out).expanduser())
    assert sorted(tmp_path.rglob("*")) == before


def test_a_checkout_with_a_marker_is_still_a_checkout(checkout: Path) -> None:
    (checkout / MARKER).write_text('{"tunegate": 1}')
    with pytest.raises(errors.OutputError, match="not made by tunegate"):
        visit(Path())


def test_what_an_earlier_step_handed_over_is_ours(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name in ("changes.json", "tasks.json", "plan.json", "outcome-3.json"):
        (out / name).write_text('{"schema": 1}')
    (out / "matrix.json").write_text('{"include": []}')
    visit(out)
    assert is_marked_here(out)


@pytest.mark.parametrize("name", ["plan.json", MARKER, "work/model", "notes.md"])
def test_what_git_tracks_is_nobodys_output(name: str, checkout: Path) -> None:
    file = checkout / ".tunegate" / name
    file.parent.mkdir(parents=True)
    file.write_text('{"schema": 1, "tunegate": 1}')
    (checkout / ".tunegate" / MARKER).write_text('{"tunegate": 1}')
    git("add", "-f", str(file))
    for out in (Path(".tunegate"), checkout / ".tunegate"):
        with pytest.raises(errors.OutputError, match=rf"git tracks \.tunegate/{name}"):
            visit(out)
    assert file.exists()


def test_an_index_that_git_cannot_read_says_nothing(checkout: Path) -> None:
    visit(Path(".tunegate"))
    (checkout / ".git" / "index").write_text("damaged")
    with pytest.raises(errors.OutputError, match="cannot say what it tracks"):
        visit(Path(".tunegate"))


@pytest.mark.parametrize("name", ["report.md", "verdict.json", "work", "builds", "builds/m/cpu"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_we_never_make_is_not_touched(name: str, kind: str, tmp_path: Path) -> None:
    precious, out = tmp_path / "precious", tmp_path / "out"
    precious.mkdir()
    visit(out)
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    (out / name).symlink_to(precious) if kind == "link" else os.mkfifo(out / name)
    with pytest.raises(errors.OutputError, match=rf"{name}: (a link|not of the kind)"):
        visit(out)


def test_a_file_system_of_its_own_may_be_the_directory(tmp_path: Path) -> None:
    (tmp_path / "out" / "lost+found").mkdir(parents=True)
    visit(tmp_path / "out")


def test_a_directory_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        errors.OutputError, match=r"file/out: cannot be written \(Not a directory\)"
    ):
        visit(tmp_path / "file" / "out")


@pytest.mark.parametrize("left", ["", '{"schema": 1, "shard": 0, "run": {"cel'])
def test_a_handed_over_file_that_was_cut_off_is_called_that(left: str, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"schema": 1}')
    (tmp_path / "measurements-1.json").write_text(left)
    with pytest.raises(
        errors.OutputError, match=r"measurements-1.json: cut off or damaged. Fetch it"
    ):
        visit(tmp_path)
    (tmp_path / "notes.md").touch()
    with pytest.raises(errors.OutputError, match="not made by tunegate"):
        visit(tmp_path)


def test_a_file_that_no_run_reads_is_written_while_one_is_at_work(checkout: Path) -> None:
    with opened_output(checkout / "out", "run"):
        assert shared_output(checkout / "out") == checkout / "out"
    (checkout / "theirs").mkdir()
    (checkout / "theirs" / "file").touch()
    with pytest.raises(errors.OutputError, match="not made by tunegate"):
        shared_output(checkout / "theirs")


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted_disk(tmp_path / "full") as place:
        yield place


def test_a_write_that_found_no_room_is_told_from_its_cause(tmp_path: Path) -> None:
    try:
        try:
            raise OSError(errno.ENOSPC, "No space left on device", "/data/verdict.json")
        except OSError as cause:
            raise errors.OutputError("out/verdict.json: cannot be written.") from cause
    except errors.OutputError as error:
        found = as_full_disk(error, [tmp_path])
    assert isinstance(found, errors.EnvironmentUnfitError)
    assert str(found) == (
        "a disk is full, that of /data/verdict.json (out/verdict.json: cannot be "
        "written). What was finished is kept. Make room, or choose another place "
        "with --out or TMPDIR, and run again."
    )


def test_a_limit_of_the_process_is_named_whatever_file_met_it(tmp_path: Path) -> None:
    error = errors.OutputError("out/verdict.json: cannot be written. Choose another with --out.")
    error.__cause__ = OSError(errno.EFBIG, "File too large")
    assert str(as_full_disk(error, [tmp_path])) == (
        "this machine refuses: OSError: [Errno 27] File too large. Raise ulimit -f."
    )


def test_a_model_is_not_to_blame_for_a_full_disk(full_disk: Path, tmp_path: Path) -> None:
    error = errors.ModelError("m.onnx: ONNX Runtime refuses the model. Fix the export.")
    found = as_full_disk(error, [tmp_path, full_disk / "out" / "not-yet"])
    assert isinstance(found, errors.EnvironmentUnfitError)
    assert f"that of {full_disk}" in str(found)
    assert "refuses the model. Fix the export)" in str(found)


def test_where_there_is_room_an_error_is_itself(tmp_path: Path) -> None:
    for error in (
        errors.ModelError("broken"),
        ZeroDivisionError(),
        OSError(errno.EACCES, "denied"),
    ):
        assert as_full_disk(error, [tmp_path]) is error


def test_what_the_user_can_mend_stays_so_on_a_full_disk(full_disk: Path) -> None:
    for error in (errors.ConfigError("unknown key"), errors.CancelledError("cancelled")):
        assert as_full_disk(error, [full_disk]) is error
