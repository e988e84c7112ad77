import shlex
import sys
from pathlib import Path

import pytest

from tests.support.declared_commands import all_commands
from tests.support.programs import run_program
from tunegate.cli.help_pages import is_answered, page
from tunegate.cli.main import main
from tunegate.cli.parse import fields_of
from tunegate.errors import ConfigError


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.fixture
def bash(capsys: pytest.CaptureFixture[str]) -> str:
    return script("bash", capsys)


def completed(bash: str, line: str) -> list[str]:
    """What bash offers for the last word of the line."""
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
        (["--help"], "compare"),
        (["help", "help"], "compare"),
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
    done = run_program([sys.executable, "-c", script], check=True)
    assert done.stderr == "[]\n"
