from __future__ import annotations

from pathlib import Path

import msgspec

from tunegate.cli.commands.comparing import CompareOptions
from tunegate.cli.commands.gating import RunOptions
from tunegate.cli.shared_options import (
    BudgetOptions,
    CacheAddress,
    Common,
    ComparedRevisions,
    MeasuringOptions,
)
from tunegate.settings import Overrides, Settings


def test_the_groups_that_a_command_takes_become_its_settings() -> None:
    options = RunOptions(
        common=Common(out=Path("o"), as_json=True),
        revisions=ComparedRevisions(base="v1"),
        budget=BudgetOptions(given={"budget.minutes": 3.0}),
        cache=CacheAddress(given={"cache.mode": "ro"}),
    )
    assert options.settings == Settings(
        out=Path("o"),
        as_json=True,
        base="v1",
        overrides=Overrides({"budget.minutes": 3.0, "cache.mode": "ro"}),
    )


def test_a_field_of_the_commands_own_is_no_setting() -> None:
    settings = CompareOptions(base="old.onnx", head="new.onnx").settings
    assert (settings.base, settings.head) == (None, None)


def test_every_setting_is_an_option_of_a_shared_group() -> None:
    """A setting that no group fills would ignore what the user wrote without a word."""
    groups: tuple[type[msgspec.Struct], ...] = (
        Common,
        ComparedRevisions,
        MeasuringOptions,
    )
    filled = {name for group in groups for name in group.__struct_fields__}
    settings = {*Settings.__struct_fields__} - {"overrides"}
    assert settings <= filled
