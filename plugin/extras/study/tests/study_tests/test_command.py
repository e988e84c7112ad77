from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from tests.support.reference_page import command_section

from tunegate.cli.parse import parse
from tunegate_study.command import COMMAND, SELFTEST, level, shard_of_shards


def test_a_shard_is_one_of_so_many() -> None:
    assert [shard_of_shards(each) for each in ("1/1", "2/3")] == [(1, 1), (2, 3)]


@pytest.mark.parametrize("text", ["", "3/2", "0/2", "1", "1/2/3", "a/b"])
def test_what_is_no_shard_is_refused_in_words(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a shard such as 2/3"):
        shard_of_shards(text)


def test_a_level_is_what_stands_behind_its_axis() -> None:
    assert level("model=a=b") == ("model", "a=b")


@pytest.mark.parametrize("text", ["", "model", "=a", "model="])
def test_what_is_no_level_is_refused_in_words(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not AXIS=LEVEL"):
        level(text)


def test_the_page_of_the_extra_lists_every_option() -> None:
    page = (Path(__file__).parents[2] / "README.md").read_text()
    shared = "](../../../docs/commands.md#options-"
    for command in (COMMAND, SELFTEST):
        assert command_section(command).strip("\n").replace("](#options-", shared) in page


def test_the_command_is_found_beside_those_of_the_core() -> None:
    found = parse(["study", "study.yaml", "--shard", "2/3", "--out", "o"])
    assert found.command == COMMAND
    assert found.options.common.out == Path("o")
