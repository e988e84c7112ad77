from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tunegate.cli.completion import bash


def completed(line: str) -> list[str]:
    """What bash offers for the last word of the line."""
    ask = f"""
        compopt() {{ :; }}
        COMP_WORDS=({line}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
        _tunegate
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", bash.script() + ask], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("tunegate dem", ["demo"]),
        ("tunegate cache g", ["gc"]),
        ("tunegate help cache w", ["why-miss"]),
        ("tunegate plan --sh", ["--shards"]),
        ("tunegate run --cache-mode r", ["ro", "rw"]),
        ("tunegate run --cache-mode = r", ["ro", "rw"]),
        ("tunegate cache gc --gr", ["--grace-hours"]),
        ("tunegate completion f", ["fish"]),
        ("tunegate run --zone x", []),
        ("tunegate compare m", []),
    ],
)
def test_bash_offers_what_is_declared(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


def test_bash_offers_every_command_first() -> None:
    assert {"run", "cache", "help", "--version"} <= set(completed('tunegate ""'))


def test_a_file_is_offered_whole_whatever_its_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["$(touch made)", "*", "a b.onnx", "c"]
    for name in names:
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    offered = completed('tunegate run --log-file ""')
    assert sorted(offered) == names
    assert sorted(path.name for path in tmp_path.iterdir()) == names
