import shlex
import sys
from pathlib import Path

import msgspec
import pytest

from tests.plugins.registered_plugin import nothing_installed, register
from tests.support.declared_commands import all_commands, core_commands
from tests.support.present import present
from tests.support.programs import run_program
from tunegate.cli import command_tree, commands, shared_options
from tunegate.cli.commands.gating import RunOptions
from tunegate.cli.help_pages import group_page, is_answered, overview, page
from tunegate.cli.main import asked_job, main
from tunegate.cli.parse import fields_of, named_command, parse
from tunegate.errors import ConfigError, EnvironmentUnfitError
from tunegate.settings import Overrides, Settings

ROOM = Path(commands.__path__[0])


def test_every_declaration_is_listed_once() -> None:
    declarations = sum(path.read_text().count(" = Command(") for path in ROOM.glob("*.py"))
    names = [command.name for command in core_commands()]
    assert len(names) == len(set(names)) == declarations


FLY = """
from tunegate.cli.command import Command
from tunegate.cli.shared_options import Options

COMMAND = Command(
    name="fly",
    summary="leave the ground",
    options=Options,
    handler="nowhere_to_be_found:run",
    examples=("tunegate fly",),
)
"""


@pytest.fixture
def fly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The module of a package that adds a command, and nothing else is installed."""
    nothing_installed(tmp_path, monkeypatch)
    register(tmp_path, "a_plane-1.0", command_tree.COMMAND_GROUP, "fly", "a_plane:COMMAND")
    module = tmp_path / "a_plane.py"
    module.write_text(FLY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "a_plane", raising=False)
    return module


@pytest.mark.usefixtures("fly")
def test_a_command_of_an_extra_is_one_like_any_other() -> None:
    assert parse(["fly", "--json"]).command.handler == "nowhere_to_be_found:run"
    assert [command.name for command in all_commands()][-1] == "fly"
    assert "  fly           leave the ground" in overview().splitlines()
    assert "fly" in command_tree.command_names()


def test_a_command_of_an_extra_may_be_one_of_a_group(fly: Path) -> None:
    with pytest.raises(ConfigError, match=r'there is no command "fly"\. See: tunegate cache'):
        parse(["cache", "fly"])
    register(fly.parent, "a_bird-1.0", command_tree.COMMAND_GROUP, "cache fly", "a_plane:COMMAND")
    fly.write_text(FLY.replace('name="fly"', 'name="cache fly"'))
    assert parse(["cache", "fly", "--json"]).command.name == "cache fly"
    assert "  fly           leave the ground" in group_page(command_tree.CACHE_GROUP).splitlines()
    assert command_tree.command_names().count("cache fly") == 0


@pytest.mark.usefixtures("fly")
def test_a_command_of_a_group_that_is_not_installed_says_what_to_install() -> None:
    line = (
        r'tunegate cache export is not installed\. Install it: pip install "tunegate\[exchange\]"'
    )
    with pytest.raises(ConfigError, match=line):
        parse(["cache", "export", "d"])


def test_an_extra_that_cannot_be_used_costs_its_own_command(fly: Path) -> None:
    fly.write_text("import a_library_that_is_not_here\n")
    (line,) = (line for line in overview().splitlines() if line.startswith("  fly "))
    assert "cannot be used: a-plane 1.0:" in line
    assert parse(["detect"]).command.name == "detect"
    with pytest.raises(EnvironmentUnfitError, match=r"a-plane 1\.0: .* Install it again"):
        parse(["fly"])


def test_what_declares_another_command_is_refused(fly: Path) -> None:
    fly.write_text(FLY.replace('name="fly"', 'name="run"'))
    with pytest.raises(EnvironmentUnfitError, match="does not declare the command fly"):
        parse(["fly"])


def test_a_name_of_the_core_stays_the_cores(fly: Path) -> None:
    register(fly.parent, "thief-1.0", command_tree.COMMAND_GROUP, "run", "a_plane:COMMAND")
    assert parse(["run"]).command.handler.startswith("tunegate.")
    assert [command.name for command in all_commands()].count("run") == 1


def test_the_first_words_name_the_command_and_the_rest_is_its() -> None:
    found, rest = named_command(["cache", "gc", "--dry-run"])
    assert (found.name, list(rest)) == ("cache gc", ["--dry-run"])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ([], "a command is missing"),
        (["hlep"], 'no command "hlep". Did you mean help?'),
        (["help"], 'no command "help"'),
        (["cache", "gx"], "See: tunegate cache --help"),
        (["--versoin"], 'no option "--versoin". Did you mean --version?'),
        (["run", "--out", ""], "argument --out: is empty: name a path"),
        (["cache", "pull", ""], "argument DIR: is empty: name a path"),
    ],
)
def test_what_names_none_is_a_usage_error(line: list[str], said: str) -> None:
    """An empty path comes of a variable that is not set, and would be this directory."""
    with pytest.raises(ConfigError) as caught:
        parse(line)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        ["detect"],
        ["detect", "--base", "main"],
        ["run", "--ci", "auto", "--help"],
        ["run", "--ci"],
        ["doctor", "--ci", "auto"],
        ["rum", "--ci=auto"],
        [],
    ],
)
def test_what_has_no_job_or_is_no_command_is_none(
    line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked_job(line) is None
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("step", ["run", "plan", "tune", "gate"])
def test_every_step_can_be_a_job(step: str) -> None:
    found = present(asked_job([step, "--ci", "auto", "--out", "o", "--base", "b", "--policy=p"]))
    request = found.request
    expected = (*("auto", step), Path("o"), "never")
    assert (found.ci, request.step, request.out, request.comment) == expected
    assert (request.asked.base, request.asked.head, request.policy) == ("b", "", "p")


def test_what_a_job_asks_for_is_what_its_command_line_says() -> None:
    line = ["run", "--ci=gitlab", "--comment", "always", "--repository=r", "--since-release"]
    found = present(asked_job([*line, "--zone", "team/x", "--cache-mode", "off"]))
    request = found.request
    assert (found.ci, request.comment, request.repository) == ("gitlab", "always", Path("r"))
    assert request.asked.since_release
    assert (request.zone, request.is_without_cache) == ("team/x", True)


def test_the_words_that_are_carried_out_are_of_no_job() -> None:
    found = present(asked_job(["run", "--ci", "auto", "--minutes", "5"]))
    options = parse(found.request.words).options
    assert isinstance(options, RunOptions)
    assert options.job.ci == ""
    assert options.settings.overrides.get("budget.minutes") == 5


@pytest.mark.parametrize("named", [[], ["--ci", "auto"]])
def test_a_step_that_names_no_ci_is_a_job_of_the_one_that_it_runs_in(named: list[str]) -> None:
    found = present(asked_job(["plan", "--json", "--no-base", *named]))
    assert (found.ci, found.is_named, found.is_json) == ("auto", bool(named), True)
    assert found.request.asked.no_base


def test_the_groups_that_a_command_takes_become_its_settings() -> None:
    options = RunOptions(
        common=shared_options.Common(out=Path("o"), as_json=True),
        revisions=shared_options.ComparedRevisions(base="v1"),
        budget=shared_options.BudgetOptions(given={"budget.minutes": 3.0}),
        cache=shared_options.CacheAddress(given={"cache.mode": "ro"}),
    )
    assert options.settings == Settings(
        out=Path("o"),
        as_json=True,
        base="v1",
        overrides=Overrides({"budget.minutes": 3.0, "cache.mode": "ro"}),
    )


def test_every_setting_is_an_option_of_a_shared_group() -> None:
    """A setting that no group fills would ignore what the user wrote without a word."""
    groups: tuple[type[msgspec.Struct], ...] = (
        shared_options.Common,
        shared_options.ComparedRevisions,
        shared_options.MeasuringOptions,
    )
    filled = {name for group in groups for name in group.__struct_fields__}
    settings = {*Settings.__struct_fields__} - {"overrides"}
    assert settings <= filled


# Completion, help and version.


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.fixture
def bash(capsys: pytest.CaptureFixture[str]) -> str:
    return script("bash", capsys)


def completed(bash: str, line: str) -> list[str]:
    """Returns what bash offers for the last word of the line."""
    words = shlex.split(line)
    ask = f"""
        compopt() {{ :; }}
        COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}
        _shtab_tunegate tunegate {shlex.quote(words[-1])} {shlex.quote(words[-2])}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = run_program(["bash", "--norc", "-c", bash + ask], check=True)
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("tunegate dem", ["demo"]),
        ("tunegate cache g", ["gc"]),
        ("tunegate help wa", ["warm"]),
        ("tunegate plan --sh", ["--shards"]),
        ("tunegate run --cache-mode r", ["rw", "ro"]),
        ("tunegate cache gc --gr", ["--grace-hours"]),
        ("tunegate completion f", ["fish"]),
        ("tunegate run --zone x", []),
    ],
)
def test_bash_offers_what_is_declared(bash: str, line: str, offered: list[str]) -> None:
    assert sorted(completed(bash, line)) == sorted(offered)


def test_a_file_is_offered_whole_whatever_its_name_is(
    bash: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["$(touch made)", "*", "a b.onnx", "c"]
    for name in names:
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    assert sorted(completed(bash, 'tunegate run --log-file ""')) == names
    assert sorted(path.name for path in tmp_path.iterdir()) == names


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_names_every_command_and_option(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = script(shell, capsys)
    for command in all_commands():
        assert command.name.rpartition(" ")[2] in text
        for field in fields_of(command.options):
            assert all(flag.lstrip("-") in text for flag in field.flags)


HEAVY = ("numpy", "rich", "yaml", "cryptography", "tempfile", "hashlib", "tunegate.edges")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (["help"], "tunegate [--version] COMMAND"),
        (["help", "--help"], "compare"),
        (["help", "cache"], "why-miss"),
        (["cache", "-h"], "why-miss"),
        (["help", "cache", "gc"], "--grace-hours N"),
        (["run", "--nonsense", "--help"], "tunegate run --base main"),
        (["--version"], "tunegate 0."),
    ],
)
def test_help_is_printed_at_every_level(
    line: list[str], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert is_answered(line)
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize("line", [["run"], ["fly"], ["help", "fly"], ["cache"], []])
def test_what_is_no_page_is_left_to_the_command(line: list[str]) -> None:
    assert not is_answered(line)


def test_help_of_what_does_not_exist_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean detect"):
        page(["help", "detct"])


@pytest.mark.parametrize("line", ["--version", "--help", "run --help", "cache gc --help"])
def test_a_page_waits_for_nothing_that_carries_a_command_out(line: str) -> None:
    script = (
        "import sys; from tunegate.cli.help_pages import is_answered; "
        f"assert is_answered({line.split()}); "
        f"print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr)"
    )
    assert run_program([sys.executable, "-c", script], check=True).stderr == "[]\n"
