import ast
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tunegate
from tunegate.errors import UNFIT, OutputError, OutputInUseError
from tunegate.system.output import owned_directory
from tunegate.system.output.directory import opened_output

SHARED_WITH_THE_ACTION = ("errors.py", "regular_files.py", "system/output/owned_directory.py")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "checkout"
    (root / ".git").mkdir(parents=True)
    monkeypatch.chdir(root)
    return root


@pytest.mark.parametrize("out", [".tunegate", "linked/.tunegate", "./x/../linked/y"])
def test_no_link_of_a_checkout_is_followed(out: str, checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (checkout / "x").mkdir()
    for name in (".tunegate", "linked"):
        (checkout / name).symlink_to(tmp_path / "precious")
    for named in (Path(out), checkout / out):
        with pytest.raises(OutputError, match="is a link, and links are not followed"):
            owned_directory.refuse_links(named)


def test_below_the_current_directory_every_link_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout that was unpacked has no `.git`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "precious").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "precious")
    with pytest.raises(OutputError, match="is a link"):
        owned_directory.refuse_links(Path("linked/out"))


def test_a_link_into_a_checkout_hides_no_links_in_it(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "way").symlink_to(checkout)
    (checkout / "linked").symlink_to(tmp_path / "precious")
    owned_directory.refuse_links(tmp_path / "way" / ".tunegate")
    with pytest.raises(OutputError, match="is a link"):
        owned_directory.refuse_links(tmp_path / "way" / "linked" / ".tunegate")


def test_links_outside_of_checkouts_are_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "tmp").symlink_to(tmp_path / "scratch")
    owned_directory.refuse_links(tmp_path / "tmp" / "out")
    with pytest.raises(OutputError, match="is a link"):
        owned_directory.refuse_links(tmp_path / "tmp")


def test_a_marker_holds_for_the_directory_it_was_made_in(tmp_path: Path) -> None:
    out, copy = tmp_path / "out", tmp_path / "copy"
    out.mkdir()
    assert not owned_directory.is_marked(out)
    owned_directory.mark(out)
    shutil.copytree(out, copy)
    assert owned_directory.is_marked(out)
    assert owned_directory.is_marked_here(out)
    assert owned_directory.is_marked(copy)
    assert not owned_directory.is_marked_here(copy)


def test_a_linked_marker_is_none(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    owned_directory.mark(out)
    (out / owned_directory.MARKER).rename(tmp_path / "elsewhere")
    (out / owned_directory.MARKER).symlink_to(tmp_path / "elsewhere")
    assert not owned_directory.is_marked(out)


@pytest.mark.parametrize("name", SHARED_WITH_THE_ACTION)
def test_what_the_action_shares_runs_on_the_python_of_any_runner(name: str) -> None:
    core = Path(tunegate.__file__).parent
    text = (core / name).read_text()
    imported = {
        (node.module.removeprefix("tunegate.").replace(".", "/"), each.name)
        for node in ast.walk(ast.parse(text, feature_version=(3, 8)))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tunegate")
        for each in node.names
    }
    files = {
        f"{module}/{each}.py" if (core / module).is_dir() else f"{module}.py"
        for module, each in imported
    }
    assert files <= set(SHARED_WITH_THE_ACTION)
    assert "msgspec" not in text


@pytest.fixture
def out(tmp_path: Path) -> Path:
    with opened_output(tmp_path / "out", "run") as opened:
        (opened.empty_workdir() / "large.bin").touch()
        (opened.path / "report.md").touch()
    return tmp_path / "out"


def test_the_working_files_of_a_killed_run_go_and_its_results_stay(out: Path) -> None:
    owned_directory.remove_abandoned_work(out)
    assert not (out / "work").exists()
    assert (out / "report.md").exists()
    owned_directory.remove_abandoned_work(out)


def test_what_a_run_still_works_with_stays(out: Path) -> None:
    with opened_output(out, "run"), pytest.raises(OutputInUseError, match="tunegate run"):
        owned_directory.remove_abandoned_work(out)
    assert (out / "work" / "large.bin").exists()


def test_a_directory_that_was_not_made_here_stays(out: Path, tmp_path: Path) -> None:
    committed = tmp_path / "committed"
    (committed / "work").mkdir(parents=True)
    (committed / ".owned-by-tunegate").write_bytes((out / ".owned-by-tunegate").read_bytes())
    owned_directory.remove_abandoned_work(committed)
    assert (committed / "work").exists()


def test_a_linked_directory_stays(out: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(out)
    with pytest.raises(OutputError, match="is a link"):
        owned_directory.remove_abandoned_work(tmp_path / "linked")
    assert (out / "work" / "large.bin").exists()


def test_a_link_in_place_of_the_working_directory_is_unused(out: Path, tmp_path: Path) -> None:
    (out / "work").rename(tmp_path / "precious")
    (out / "work").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic link"):
        owned_directory.remove_abandoned_work(out)
    assert (tmp_path / "precious" / "large.bin").exists()


HOLDING = """\
import sys, time
from pathlib import Path
from tunegate.system.output.owned_directory import held_directory
with held_directory(Path(sys.argv[1]), "run"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_run_is_refused_and_told_of_the_first(tmp_path: Path) -> None:
    with (
        owned_directory.held_directory(tmp_path, "run"),
        pytest.raises(OutputInUseError) as refused,
        owned_directory.held_directory(tmp_path, "gate"),
    ):
        pass
    assert refused.value.exit_code == UNFIT
    assert f"process {os.getpid()} (tunegate run, since 2" in str(refused.value)
    assert "UTC) writes there" in str(refused.value)


def test_a_reader_is_told_who_writes_and_takes_no_lock(tmp_path: Path) -> None:
    assert owned_directory.writer_at_work(tmp_path) == ""
    with owned_directory.held_directory(tmp_path, "run"):
        assert f"process {os.getpid()} (tunegate run, since 2" in owned_directory.writer_at_work(
            tmp_path
        )
    assert owned_directory.writer_at_work(tmp_path) == ""


def test_the_lock_dies_with_its_process(tmp_path: Path) -> None:
    first = subprocess.Popen([sys.executable, "-c", HOLDING, str(tmp_path)], stdout=subprocess.PIPE)
    with first as process:
        assert process.stdout is not None
        process.stdout.readline()
        with (
            pytest.raises(OutputInUseError, match=f"process {process.pid} "),
            owned_directory.held_directory(tmp_path, "x"),
        ):
            pass
        process.send_signal(signal.SIGKILL)
    with owned_directory.held_directory(tmp_path, "x"):
        pass


def test_a_child_does_not_inherit_it(tmp_path: Path) -> None:
    with owned_directory.held_directory(tmp_path, "run"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        with owned_directory.held_directory(tmp_path, "run"):
            pass
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}'])
def test_a_file_that_names_nobody_locks_all_the_same(text: str, tmp_path: Path) -> None:
    with owned_directory.held_directory(tmp_path, "run"):
        (tmp_path / owned_directory.LOCK).write_text(text)
        with (
            pytest.raises(OutputInUseError, match="another run writes there"),
            owned_directory.held_directory(tmp_path, "x"),
        ):
            pass


@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_what_is_no_plain_file_is_no_lock(kind: str, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    match kind:
        case "link":
            (tmp_path / owned_directory.LOCK).symlink_to(precious)
        case "pipe":
            os.mkfifo(tmp_path / owned_directory.LOCK)
        case _:
            (tmp_path / owned_directory.LOCK).mkdir()
    with (
        pytest.raises(OutputError, match="cannot be locked"),
        owned_directory.held_directory(tmp_path, "run"),
    ):
        pass
    assert precious.read_text() == "precious"
