from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tunegate.artifacts.changes import Revisions
from tunegate.cli.commands.tune import TuneOptions
from tunegate.cli.parser import Parsed, parse
from tunegate_action.activity import command_line
from tunegate_action.event import Event
from tunegate_action.inputs import read_inputs

REVISIONS = Revisions(base="b" * 40, head="a" * 40)
PULL = Event(strategy="merge-commit", zone="pr/o/r/7", repository="o/r")


def asked_by(line: list[str]) -> Parsed:
    found = parse(line)
    assert found is not None
    return found


def test_a_whole_run_takes_both_revisions_and_the_zone() -> None:
    asked = asked_by(command_line(read_inputs({}), PULL, REVISIONS))
    assert asked.command.name == "run"
    assert (asked.options.settings.base, asked.options.settings.head) == ("b" * 40, "a" * 40)
    assert asked.options.settings.overrides.zone == "pr/o/r/7"


def test_every_job_names_the_policy_and_the_later_ones_refuse_a_plan_of_another() -> None:
    behind = msgspec.structs.replace(REVISIONS, policy="c" * 40)
    for stage in ("all", "plan", "tune", "gate"):
        line = command_line(read_inputs({"TUNEGATE_STAGE": stage}), PULL, behind)
        assert asked_by(line).options.settings.policy == "c" * 40


def test_a_fork_only_reads() -> None:
    fork = Event(strategy="merge-commit", zone=None)
    asked = asked_by(command_line(read_inputs({}), fork, REVISIONS))
    assert (asked.options.settings.overrides.cache_mode, asked.options.settings.overrides.zone) == (
        "ro",
        None,
    )


def test_a_later_job_refuses_a_plan_of_other_revisions() -> None:
    for stage in ("tune", "gate"):
        inputs = read_inputs({"TUNEGATE_STAGE": stage})
        asked = asked_by(command_line(inputs, PULL, REVISIONS)).options.settings
        assert (asked.base, asked.head) == (REVISIONS.base, REVISIONS.head)
        given = read_inputs({"TUNEGATE_STAGE": stage, "TUNEGATE_HEAD": "topic"})
        assert asked_by(command_line(given, PULL, None)).options.settings.head == "topic"


def test_a_tuning_job_takes_its_shard() -> None:
    inputs = read_inputs({"TUNEGATE_STAGE": "tune", "TUNEGATE_SHARD": "3", "TUNEGATE_OUT": "o"})
    asked = asked_by(command_line(inputs, PULL, None))
    assert isinstance(asked.options, TuneOptions)
    assert (asked.options.shard, asked.options.settings.out) == (3, Path("o"))


def test_since_a_release_the_command_finds_the_base() -> None:
    inputs = read_inputs({"TUNEGATE_SINCE_RELEASE": "true", "TUNEGATE_HEAD": "topic"})
    asked = asked_by(command_line(inputs, PULL, None)).options.settings
    assert (asked.since_release, asked.base, asked.head) == (True, None, "topic")
    for stage in ("tune", "gate"):
        later = read_inputs({"TUNEGATE_SINCE_RELEASE": "true", "TUNEGATE_STAGE": stage})
        assert "--since-release" not in command_line(later, PULL, None)


def test_no_base_leaves_the_choice_to_the_command_only_when_there_is_none() -> None:
    line = command_line(read_inputs({}), PULL, Revisions(base=None, head="a" * 40))
    assert not [part for part in line if part.startswith("--base")]


@pytest.mark.parametrize("stage", ["all", "plan", "tune", "gate"])
def test_every_stage_understands_what_it_is_given_when_every_input_is_set(stage: str) -> None:
    names = ("SHARD", "SHARDS", "MINUTES", "USD", "TRIALS")
    inputs = read_inputs(
        {
            "TUNEGATE_STAGE": stage,
            "TUNEGATE_CACHE_URL": "s3://bucket",
            **{f"TUNEGATE_{name}": "2" for name in names},
        }
    )
    asked = asked_by(command_line(inputs, PULL, REVISIONS)).options.settings
    plans = stage in {"all", "plan"}
    assert asked.overrides.minutes == (2 if plans else None)
    assert asked.head == "a" * 40
    assert asked.overrides.cache_url == (None if stage == "gate" else "s3://bucket")
