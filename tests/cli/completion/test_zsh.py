from __future__ import annotations

from tunegate.cli.completion import zsh

TEXT = zsh.script()


def after(command: str) -> str:
    return TEXT.partition(f'  "{command}")\n')[2].partition("    ;;")[0]


def test_a_switch_takes_no_value_and_a_choice_its_words() -> None:
    assert "'--dry-run[only count]'" in after("cache gc")
    mode = "--cache-mode=[no cache (off), read only (ro), or read and write (rw)]"
    assert f"{mode}:off|ro|rw:(off ro rw)" in after("run")


def test_files_and_folders_are_offered_where_one_is_taken() -> None:
    assert ":FILE:_files'" in after("run")
    assert ":DIR:_files -/'" in after("run")
    assert "'*:BASE:_files'" in after("compare")


def test_the_script_works_as_a_file_of_fpath_and_when_it_is_sourced() -> None:
    assert TEXT.startswith("#compdef tunegate\n")
    assert "compdef _tunegate tunegate" in TEXT
