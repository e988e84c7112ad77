from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from msgspec import inspect

from tunegate.ci.protocol import AskedRevisions
from tunegate.cli.commands.gating import TuneOptions
from tunegate.cli.parse import parse
from tunegate.cli.shared_options import Options
from tunegate.config import Config
from tunegate.config_key import DeclaredKey, all_keys, expected
from tunegate.errors import ConfigError
from tunegate_action.inputs import read_request

ROOT = Path(__file__).resolve().parents[2]
TYPES = {"a number": "float", "a whole number": "integer", "a text": "string"}


def options(environment: dict[str, str]) -> Options:
    parsed = parse(read_request(environment).words)
    assert parsed is not None
    return parsed.options


def test_nothing_set_is_the_whole_run_with_the_files_settings() -> None:
    request = read_request({})
    assert (request.step, request.out, request.comment) == (
        "run",
        Path(".tunegate"),
        "on-change",
    )
    assert request.words == ("run", "--out=.tunegate")
    assert request.asked == AskedRevisions()


def test_limits_become_options_with_their_value_attached() -> None:
    limits = {"TUNEGATE_USD": " 0.5 ", "TUNEGATE_TRIALS": "60000"}
    request = read_request({**limits, "TUNEGATE_CACHE_URL": "--out=x"})
    assert request.words[2:] == ("--usd=0.5", "--trials=60000", "--cache-url=--out=x")


def test_revisions_are_what_the_job_asks_for() -> None:
    request = read_request({"TUNEGATE_BASE": "main", "TUNEGATE_SINCE_RELEASE": "true"})
    assert request.asked == AskedRevisions(base="main", since_release=True)


@pytest.mark.parametrize("when", ["always", "on-change", "on-alert", "never"])
def test_a_comment_is_asked_for_by_when_it_is_written(
    when: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read_request({"TUNEGATE_COMMENT": when}).comment == when
    assert not capsys.readouterr().out


@pytest.mark.parametrize(("text", "when"), [("true", "always"), ("NO", "never"), ("1", "always")])
def test_the_words_of_earlier_releases_are_taken_with_a_warning(
    text: str, when: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read_request({"TUNEGATE_COMMENT": text}).comment == when
    shown = capsys.readouterr().out
    assert shown.startswith("::warning title=tunegate::input comment: ")
    assert f"Write {when}" in shown


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("STAGE", "build", 'input stage: "build"'),
        ("COMMENT", "perhaps", 'input comment: "perhaps" is not one of always'),
        ("SINCE_RELEASE", "v1", 'input since-release: "v1"'),
    ],
)
def test_a_bad_value_is_named_with_its_input(name: str, text: str, shown: str) -> None:
    with pytest.raises(ConfigError, match=shown):
        read_request({f"TUNEGATE_{name}": text})


def test_the_token_is_no_part_of_a_request() -> None:
    assert "ghs_secret" not in repr(read_request({"TUNEGATE_GITHUB_TOKEN": "ghs_secret"}))


def test_a_tuning_job_takes_its_shard() -> None:
    given = {"TUNEGATE_STAGE": "tune", "TUNEGATE_SHARD": "3", "TUNEGATE_OUT": "o"}
    found = options(given)
    assert isinstance(found, TuneOptions)
    assert (found.shard, found.settings.out) == (3, Path("o"))


@pytest.mark.parametrize("stage", ["all", "plan", "tune", "gate", "measure", "verdict"])
def test_every_stage_understands_what_it_is_given_when_every_input_is_set(stage: str) -> None:
    names = ("SHARD", "SHARDS", "MEASURE_SHARDS", "MINUTES", "USD", "TRIALS")
    found = options(
        {
            "TUNEGATE_STAGE": stage,
            "TUNEGATE_CACHE_URL": "s3://bucket",
            **{f"TUNEGATE_{name}": "2" for name in names},
        }
    ).settings
    assert found.overrides.get("budget.minutes") == (2 if stage in {"all", "plan"} else None)
    assert found.overrides.get("cache.url") == "s3://bucket"


DECLARED = [each for each in all_keys(Config) if each.key.is_input]


@pytest.mark.parametrize("declared", DECLARED, ids=lambda each: each.place)
def test_an_input_of_the_action_is_what_its_key_declares(declared: DeclaredKey) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    types = yaml.safe_load((ROOT / "action-types.yml").read_text())
    name = declared.key.flag.removeprefix("--")
    kind = expected(inspect.type_info(declared.kind))
    says = declared.key.help
    assert action["inputs"][name]["description"] == (
        f"{says[0].upper() if not says.startswith('s3:') else 's'}{says[1:]}. "
        f"Overrides {declared.place}."
    )
    assert types["inputs"][name]["type"] == TYPES[kind.split(" >")[0]]
    variables = {
        name: value
        for step in action["runs"]["steps"]
        for name, value in step.get("env", {}).items()
    }
    variable = f"TUNEGATE_{name.upper().replace('-', '_')}"
    assert variables[variable] == f"${{{{ inputs.{name} }}}}"
