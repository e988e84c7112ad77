import importlib
import inspect
import shlex
from pathlib import Path

import pytest

from tests.support.declared_commands import all_commands
from tests.support.workspace import Workspace
from tunegate.cli.command import Command
from tunegate.cli.main import main
from tunegate.cli.parse import fields_of, parse
from tunegate.cli.shared_options import Options
from tunegate.settings import Settings
from tunegate.system.output.directory import opened_output

COMMANDS = {command.name: command for command in all_commands()}
CHEAP = (
    "init",
    "detect",
    "history",
    "completion",
    "cache stats",
    "cache doctor",
    "cache fsck",
    "cache gc",
    "cache compact",
    "cache pull",
    "cache push",
)
"""Commands that need neither a compiler, a plan, nor a cache with records."""
RESULTS = ("plan.json", "verdict.json", "report.md", "report.html", "junit.xml", "history.html")

OF_A_VERDICT = {"verdict.json", "report.md", "report.html", "junit.xml", "sarif.json"}


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a run that has ended."""
    workspace = Workspace(tmp_path / "w")
    monkeypatch.chdir(workspace.root)
    with opened_output(workspace.root / ".tunegate", "run") as opened:
        for name in RESULTS:
            (opened.path / name).write_text("of the last run")
    return opened.path


@pytest.mark.parametrize(
    "command",
    [
        ("compare", "nope.onnx", "x.onnx"),
        ("compare", ".tunegate", ".tunegate"),
        ("compare", "--commands", "--metric-command", "echo", "echo 1", "echo 1"),
        ("compare", "--config", "nope.yaml", "models/m.onnx", "models/m.onnx"),
        ("run", "--base", "nowhere"),
        ("plan", "--base", "nowhere"),
        ("gate", "--config", "nope.yaml"),
        ("tune", "--shard", "9"),
        ("confirm", "nope.json", ".tunegate/verdict.json"),
    ],
    ids=" ".join,
)
def test_a_command_that_cannot_begin_removes_no_more_than_an_earlier_verdict(
    command: tuple[str, ...], out: Path
) -> None:
    assert main(command) == 2
    replaces = command[0] in {"compare", "run", "gate"}
    left = [name for name in RESULTS if not (replaces and name in OF_A_VERDICT)]
    assert {each.name for each in out.iterdir()} & {*RESULTS} == {*left}
    assert {(out / name).read_text() for name in left} == {"of the last run"}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
def test_every_example_parses_to_the_command_that_shows_it(command: Command) -> None:
    assert command.examples
    for line in command.examples:
        asked = parse(shlex.split(line)[1:])
        assert asked.command is command
        assert type(asked.options) is command.options


@pytest.mark.parametrize("name", CHEAP)
def test_the_examples_of_a_cheap_command_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(tmp_path / "models")
    monkeypatch.chdir(workspace.root)
    (workspace.root / "offline-cache").mkdir()
    if name == "init":
        (workspace.root / "tunegate.yaml").unlink()
    for line in COMMANDS[name].examples:
        assert main(shlex.split(line)[1:]) == 0


@pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
def test_the_handler_takes_the_options_that_the_command_declares(command: Command) -> None:
    module, _, name = command.handler.partition(":")
    handler = getattr(importlib.import_module(module), name)
    signature = inspect.signature(handler, eval_str=True)
    (taken,) = signature.parameters.values()
    assert (taken.annotation, signature.return_annotation) == (command.options, int)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
def test_every_option_has_a_help_and_a_name_of_its_own(command: Command) -> None:
    fields = fields_of(command.options)
    flags = [flag for field in fields for flag in field.flags]
    assert len(flags) == len(set(flags))
    assert all(field.declared.help for field in fields)
    assert all(field.metavar for field in fields if not field.is_switch)


def test_what_an_option_leaves_out_is_what_the_settings_leave_out() -> None:
    """The shared options are read into settings by name; each must be there, with its default."""
    for command in COMMANDS.values():
        if not any(field.is_required for field in fields_of(command.options)):
            assert command.options().settings == Settings()
    kinds = (Settings, Options)
    known = {name for kind in kinds for name in kind.__struct_fields__} | {
        "ci",
        "comment",
        "quiet",
        "verbose",
        "log_file",
    }
    for command in COMMANDS.values():
        shared = {
            field.name
            for field in fields_of(command.options)
            if field.title not in {"", "budget", "gate", "cache"}
        }
        assert shared <= known
