from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest

from tunegate.cli.option import Argument, Option
from tunegate.cli.parse import fields_of, filled
from tunegate.cli.shared_options import BudgetOptions, Common, Options


class SomeOptions(Options, frozen=True, kw_only=True):
    """Options of a command that there is not."""

    budget: BudgetOptions = BudgetOptions()
    place: Annotated[Path, Argument("where", "DIR", Path)]
    dry_run: Annotated[bool, Option("only count")] = False
    grace_hours: Annotated[float, Option("how long", "N", float)] = 24.0
    mode: Annotated[str, Option("how", choices=("a", "b"))] = ""


FIELDS = {field.name: field for field in fields_of(SomeOptions)}


def test_a_commands_own_fields_come_first_and_those_of_every_command_last() -> None:
    titles = list(dict.fromkeys(field.title for field in FIELDS.values()))
    assert titles == ["", "budget", "every command"]


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("place", ()),
        ("dry_run", ("--dry-run",)),
        ("as_json", ("--json",)),
        ("quiet", ("-q", "--quiet")),
        ("budget.minutes", ("--minutes",)),
    ],
)
def test_an_option_has_the_name_of_its_field_or_its_own(name: str, flags: tuple[str, ...]) -> None:
    assert FIELDS[name].flags == flags


def test_help_shows_the_default_that_the_struct_has() -> None:
    assert FIELDS["grace_hours"].help == "how long; default: 24"
    assert FIELDS["out"].help.endswith("; default: .tunegate")
    assert FIELDS["dry_run"].help == "only count"
    assert FIELDS["mode"].metavar == "a|b"


def test_what_is_not_given_has_its_default_in_every_group() -> None:
    options = filled(SomeOptions, {"place": Path("p"), "budget.minutes": 3.0, "quiet": True})
    assert options == SomeOptions(
        place=Path("p"),
        budget=BudgetOptions(given={"budget.minutes": 3.0}),
        common=Common(quiet=True),
    )


def test_one_of_two_options_that_exclude_each_other_names_the_other() -> None:
    assert FIELDS["verbose"].excluded_with == FIELDS["quiet"].excluded_with == "quiet"
