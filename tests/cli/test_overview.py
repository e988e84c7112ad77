from __future__ import annotations

from tunegate.cli.command_tree import CACHE_GROUP, command_names
from tunegate.cli.help_pages import group_page, overview


def test_every_command_has_a_line_with_its_summary() -> None:
    lines = [line.split() for line in overview().splitlines() if line.startswith("  ")]
    assert [words[0] for words in lines] == [*command_names(), "help"]
    assert all(len(words) > 2 for words in lines)


def test_a_group_lists_its_commands() -> None:
    lines = [line.split() for line in group_page(CACHE_GROUP).splitlines() if line.startswith("  ")]
    assert [words[0] for words in lines] == list(CACHE_GROUP.commands)
    assert "Look into the cache, and maintain it." in group_page(CACHE_GROUP)
