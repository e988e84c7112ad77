from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tunegate.cli.command_tree import all_commands
from tunegate.cli.completion import bash, fish, zsh
from tunegate.cli.completion.words import ValueKind, offers
from tunegate.cli.main import main
from tunegate.cli.parse import fields_of


def test_an_option_takes_the_same_kind_of_value_after_every_command() -> None:
    """The completion of bash has one rule for an option of all commands."""
    kinds: dict[str, set[ValueKind | None]] = {}
    for offer in offers():
        for flag in offer.flags:
            for name in flag.names:
                kinds.setdefault(name, set()).add(flag.kind)
    assert {name for name, found in kinds.items() if len(found) > 1} == set()


@pytest.mark.parametrize("script", [bash.script, zsh.script, fish.script])
def test_a_script_names_every_command_and_option(script: Callable[[], str]) -> None:
    text = script()
    for command in all_commands():
        assert command.name in text
        for field in fields_of(command.options):
            assert all(flag.lstrip("-") in text for flag in field.flags)


def test_a_meaning_with_a_quote_or_a_bracket_ends_no_word() -> None:
    assert zsh._quoted("it's") == "'it'\\''s'"
    assert zsh._escaped("a:b[c]") == r"a\:b\[c\]"
    assert fish._quoted("it's") == r"'it\'s'"


def completed(line: str) -> list[str]:
    """What bash offers for the last word of the line."""
    ask = f"""
        compopt() {{ :; }}
        COMP_WORDS=({line}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
        _tunegate
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", bash.script() + ask], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("tunegate dem", ["demo"]),
        ("tunegate cache g", ["gc"]),
        ("tunegate help cache w", ["why-miss"]),
        ("tunegate plan --sh", ["--shards"]),
        ("tunegate run --cache-mode r", ["ro", "rw"]),
        ("tunegate run --cache-mode = r", ["ro", "rw"]),
        ("tunegate cache gc --gr", ["--grace-hours"]),
        ("tunegate completion f", ["fish"]),
        ("tunegate run --zone x", []),
        ("tunegate compare m", []),
    ],
)
def test_bash_offers_what_is_declared(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


def test_bash_offers_every_command_first() -> None:
    assert {"run", "cache", "help", "--version"} <= set(completed('tunegate ""'))


def test_a_file_is_offered_whole_whatever_its_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["$(touch made)", "*", "a b.onnx", "c"]
    for name in names:
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    offered = completed('tunegate run --log-file ""')
    assert sorted(offered) == names
    assert sorted(path.name for path in tmp_path.iterdir()) == names


LINES = fish.script().splitlines()


def after(command: str) -> list[str]:
    condition = f"complete -c tunegate -n '__tunegate_is {command}' "
    return [line.removeprefix(condition) for line in LINES if line.startswith(condition)]


def test_a_switch_takes_no_value_and_a_choice_its_words() -> None:
    assert "-l dry-run -d 'only count'" in after("cache gc")
    assert any(line.startswith("-l cache-mode -x -a 'off ro rw'") for line in after("run"))


def test_files_are_offered_only_where_one_is_taken() -> None:
    assert "complete -c tunegate -f" in LINES
    assert "-F" in after("compare")
    assert "-F" not in after("run")


def test_a_command_of_a_group_is_told_from_one_of_the_same_name() -> None:
    assert not any("cache-mode" in line for line in after("cache"))
    assert any("cache-mode" in line for line in after("cache doctor"))
    assert any("-a doctor" in line for line in after("cache"))


TEXT = zsh.script()


def zsh_after(command: str) -> str:
    return TEXT.partition(f'  "{command}")\n')[2].partition("    ;;")[0]


def test_zsh_a_switch_takes_no_value_and_a_choice_its_words() -> None:
    assert "'--dry-run[only count]'" in zsh_after("cache gc")
    mode = "--cache-mode=[no cache (off), read only (ro), or read and write (rw)]"
    assert f"{mode}:off|ro|rw:(off ro rw)" in zsh_after("run")


def test_files_and_folders_are_offered_where_one_is_taken() -> None:
    assert ":FILE:_files'" in zsh_after("run")
    assert ":DIR:_files -/'" in zsh_after("run")
    assert "'*:BASE:_files'" in zsh_after("compare")


def test_the_script_works_as_a_file_of_fpath_and_when_it_is_sourced() -> None:
    assert TEXT.startswith("#compdef tunegate\n")
    assert "compdef _tunegate tunegate" in TEXT


@pytest.mark.parametrize(
    ("shell", "script"), [("bash", bash.script()), ("zsh", zsh.script()), ("fish", fish.script())]
)
def test_the_script_of_the_shell_is_the_product(
    shell: str, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    assert capsys.readouterr() == (script, "")


def test_a_shell_that_is_not_known_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "bash" in capsys.readouterr().err
