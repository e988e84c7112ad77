import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from msgspec import inspect

from tests.house.sources import ROOT as SOURCES_ROOT
from tests.support.git_repository import new_repository
from tests.support.programs import run_program
from tunegate.ci.protocol import AskedRevisions
from tunegate.cli.commands.gating import TuneOptions
from tunegate.cli.parse import parse
from tunegate.cli.shared_options import Options
from tunegate.config import Config
from tunegate.config_key import DeclaredKey, all_keys, describe_type
from tunegate.errors import ConfigError, RevisionError
from tunegate.system.git.process import GitProcess
from tunegate.system.git.repository import GitRepository
from tunegate_action.debug_log import is_debug, show_debug
from tunegate_action.inputs import read_request
from tunegate_action.main import safe_directory
from tunegate_environment.extras import UnknownExtraError, extras_for, locks_of

ROOT = Path(__file__).resolve().parents[2]
TYPES = {"a number": "float", "a whole number": "integer", "a text": "string"}


def options(environment: dict[str, str]) -> Options:
    parsed = parse(read_request(environment).words)
    assert parsed is not None
    return parsed.options


def test_nothing_set_is_the_whole_run_with_the_files_settings() -> None:
    request = read_request({})
    assert (request.step, request.out, request.comment) == ("run", Path(".tunegate"), "on-change")
    assert request.words == ("run", "--out=.tunegate")
    assert request.asked == AskedRevisions()


def test_limits_become_options_with_their_value_attached() -> None:
    limits = {"TUNEGATE_USD": " 0.5 ", "TUNEGATE_TRIALS": "60000"}
    request = read_request({**limits, "TUNEGATE_CACHE_URL": "--out=x"})
    assert request.words[2:] == ("--usd=0.5", "--trials=60000", "--cache-url=--out=x")


def test_a_checkout_in_a_folder_of_the_workspace_has_its_configuration_in_it() -> None:
    request = read_request({"TUNEGATE_PATH": "models-repo"})
    assert request.words == ("run", "--out=.tunegate", "--repository=models-repo")
    found = (request.repository, request.config, request.out)
    assert found == (Path("models-repo"), Path("models-repo/tunegate.yaml"), Path(".tunegate"))
    named = read_request({"TUNEGATE_PATH": "models-repo/", "TUNEGATE_CONFIG": "a/t.yaml"})
    assert named.words[-1] == "--config=models-repo/a/t.yaml"
    assert named.config == Path("models-repo/a/t.yaml")


@pytest.mark.parametrize("unset", ["", "unset GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS"])
def test_git_reads_the_checkout_of_a_container_whoever_it_belongs_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unset: str
) -> None:
    """Before 2.38 git takes nothing about safety from its command line or from variables."""
    own = shutil.which("git")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "git"
    program.write_text(f'#!/bin/sh\n{unset}\nexec {own} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    checkout = new_repository(tmp_path / "work" / "models-repo")
    head = checkout.commit({"file": b"1"})
    other = new_repository(tmp_path / "work" / "other")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(RevisionError, match="belongs to another user"):
        GitRepository(checkout.path)
    settings = tmp_path / 'a "b' / "settings"
    settings.parent.mkdir()
    settings.write_text("[user]\n\tname = of the job\n")
    variables = {"RUNNER_TEMP": str(tmp_path), "GIT_CONFIG_GLOBAL": str(settings)}
    job = {**os.environ, "GITHUB_WORKSPACE": str(tmp_path / "work"), **variables}
    for name, value in safe_directory(job, Path("models-repo")).items():
        monkeypatch.setenv(name, value)
    assert GitRepository(checkout.path).head() == head
    assert GitProcess(checkout.path).text("config", "user.name") == "of the job"
    with pytest.raises(RevisionError, match="belongs to another user"):
        GitRepository(other.path)
    assert safe_directory({}, Path()) == {}


def test_revisions_are_what_the_job_asks_for() -> None:
    request = read_request({"TUNEGATE_BASE": "main", "TUNEGATE_SINCE_RELEASE": "true"})
    assert request.asked == AskedRevisions(base="main", since_release=True)


@pytest.mark.parametrize("when", ["always", "on-change", "on-alert", "never"])
def test_comments_are_asked_for_by_time(when: str, capsys: pytest.CaptureFixture[str]) -> None:
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
    found = options({"TUNEGATE_STAGE": "tune", "TUNEGATE_SHARD": "3", "TUNEGATE_OUT": "o"})
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
    kind = describe_type(inspect.type_info(declared.kind))
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


# The debug log of a job that was started again with it.

CONFIG = """\
models: [{path: "::error::models/*.onnx"}]
targets: [{name: cpu}]
cache: {url: "s3://acme/s3cret-value"}
"""


@pytest.fixture
def said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    monkeypatch.chdir(tmp_path)

    (tmp_path / "tunegate.yaml").write_text(CONFIG)
    show_debug({"GITHUB_REF": "refs/pull/7/merge", "MY_TOKEN": "s3cret-value"})
    return capsys.readouterr().out


def test_it_has_versions_names_and_the_configuration_with_defaults(said: str) -> None:
    for part in ("tunegate 0", "msgspec ", "GITHUB_REF: refs/pull/7/merge", "margin-percent: "):
        assert part in said


def test_it_is_a_group_in_which_nothing_is_a_command_and_no_secret_stands(said: str) -> None:
    first, *inside, last = said.splitlines()
    assert (first, last) == ("::group::tunegate: debug", "::endgroup::")
    assert all(line.startswith("| ") for line in inside)
    assert "s3cret" not in said


def test_a_configuration_that_cannot_be_read_is_said_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    show_debug({"TUNEGATE_CONFIG": "other.yaml"})
    assert "| other.yaml: not found." in capsys.readouterr().out


def test_only_github_asks_for_it_and_then_the_command_says_more() -> None:
    assert is_debug({"RUNNER_DEBUG": "1"})
    assert not is_debug({"RUNNER_DEBUG": "0"})
    assert "--verbose" in read_request({"RUNNER_DEBUG": "1"}).words
    assert "--verbose" not in read_request({}).words


# The extras of a job of the Action: named by the workflow, taken from the Action's own commit.

EXTRAS = SOURCES_ROOT / "plugin" / "extras"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, lock in (("ci_hosts", "# nothing\n"), ("ray", "ray==2.40.0 \\\n    --hash=x\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pyproject.toml").touch()
        (tmp_path / name / "requirements.lock").write_text(lock)
    (tmp_path / "no_extra").mkdir()
    return tmp_path


def test_without_a_name_the_core_is_alone(folder: Path) -> None:
    assert extras_for(folder, {}) == ()
    assert extras_for(folder, {"TUNEGATE_EXTRAS": "  "}) == ()


def test_each_name_is_a_folder_beside_the_core(folder: Path) -> None:
    found = extras_for(folder, {"TUNEGATE_EXTRAS": "ray ci-hosts ray"})
    assert found == (folder / "ray", folder / "ci_hosts")
    assert locks_of(found) == (folder / "ray" / "requirements.lock",)


@pytest.mark.parametrize("name", ["no-extra", "../ci_hosts", "/tmp", "ci_hosts", "."])
def test_any_other_name_is_refused_with_those_that_there_are(folder: Path, name: str) -> None:
    with pytest.raises(UnknownExtraError, match=r"is not an extra\. There are ci-hosts, ray\."):
        extras_for(folder, {"TUNEGATE_EXTRAS": name})


def test_every_extra_of_ours_has_a_lock_that_can_be_read() -> None:
    names = " ".join(path.parent.name.replace("_", "-") for path in EXTRAS.glob("*/pyproject.toml"))
    locks_of(extras_for(EXTRAS, {"TUNEGATE_EXTRAS": names}))


def in_bootstrap(program: str, names: str) -> subprocess.CompletedProcess[str]:
    prepared = f"import sys; sys.path[:0] = [{str(SOURCES_ROOT / 'action')!r}]; import bootstrap\n"
    return run_program(
        [sys.executable, "-I", "-c", prepared + program],
        env={**os.environ, "TUNEGATE_EXTRAS": names},
    )


def test_the_action_imports_the_extras_that_its_workflow_names() -> None:
    shows = "import os; print(bootstrap.our_own(os.environ)['PYTHONPATH'])"
    core = [str(SOURCES_ROOT / name) for name in ("action", "plugin", "cache")]
    assert in_bootstrap(shows, "").stdout.strip().split(":") == core
    named = in_bootstrap(shows, "ci-hosts").stdout.strip().split(":")
    assert named == [*core, str(EXTRAS / "ci_hosts")]


def test_a_name_that_no_extra_has_ends_the_job_as_a_mistake_in_what_was_given() -> None:
    done = in_bootstrap("import os; sys.exit(bootstrap.main(['run'], os.environ))", "nothing")
    assert done.returncode == 2
    assert '::error title=tunegate::input extras: "nothing" is not an extra.' in done.stdout
