from __future__ import annotations

from pathlib import Path

from tunegate.cli.commands.compare import CompareOptions
from tunegate.cli.commands.run import RunOptions
from tunegate.cli.shared_options import BudgetOptions, CacheAddress, Common, ComparedRevisions
from tunegate.settings import Overrides, Settings


def test_the_groups_that_a_command_takes_become_its_settings() -> None:
    options = RunOptions(
        common=Common(out=Path("o"), as_json=True),
        revisions=ComparedRevisions(base="v1"),
        budget=BudgetOptions(minutes=3.0),
        cache=CacheAddress(cache_mode="ro"),
    )
    assert options.settings == Settings(
        out=Path("o"),
        as_json=True,
        base="v1",
        overrides=Overrides(minutes=3.0, cache_mode="ro"),
    )


def test_a_field_of_the_commands_own_is_no_setting() -> None:
    settings = CompareOptions(base="old.onnx", head="new.onnx").settings
    assert (settings.base, settings.head) == (None, None)
