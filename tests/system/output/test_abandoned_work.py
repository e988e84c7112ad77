from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.errors import OutputError, OutputInUseError
from tunegate.system.output.abandoned_work import remove_abandoned_work
from tunegate.system.output.directory import opened_output


@pytest.fixture
def out(tmp_path: Path) -> Path:
    with opened_output(tmp_path / "out", "run") as opened:
        (opened.empty_workdir() / "large.bin").touch()
        (opened.path / "report.md").touch()
    return tmp_path / "out"


def test_the_working_files_of_a_killed_run_go_and_its_results_stay(out: Path) -> None:
    remove_abandoned_work(out)
    assert not (out / "work").exists()
    assert (out / "report.md").exists()
    remove_abandoned_work(out)


def test_what_a_run_still_works_with_stays(out: Path) -> None:
    with opened_output(out, "run"), pytest.raises(OutputInUseError, match="tunegate run"):
        remove_abandoned_work(out)
    assert (out / "work" / "large.bin").exists()


def test_a_directory_that_was_not_made_here_stays(out: Path, tmp_path: Path) -> None:
    committed = tmp_path / "committed"
    (committed / "work").mkdir(parents=True)
    (committed / ".owned-by-tunegate").write_bytes((out / ".owned-by-tunegate").read_bytes())
    remove_abandoned_work(committed)
    assert (committed / "work").exists()


def test_a_linked_directory_stays(out: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(out)
    with pytest.raises(OutputError, match="is a link"):
        remove_abandoned_work(tmp_path / "linked")
    assert (out / "work" / "large.bin").exists()


def test_a_link_in_the_place_of_the_working_directory_is_not_followed(
    out: Path, tmp_path: Path
) -> None:
    (out / "work").rename(tmp_path / "precious")
    (out / "work").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic link"):
        remove_abandoned_work(out)
    assert (tmp_path / "precious" / "large.bin").exists()


def test_a_directory_that_no_run_has_made_is_nothing_to_do(tmp_path: Path) -> None:
    remove_abandoned_work(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []
