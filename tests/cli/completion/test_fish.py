from __future__ import annotations

from tunegate.cli.completion import fish

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
