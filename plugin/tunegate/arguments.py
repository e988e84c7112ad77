"""The options of every command, and their reading into one struct."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

import msgspec

from tunegate import __version__
from tunegate.argument_values import count, not_negative, positive, whole
from tunegate.cache_arguments import ACTIONS, CacheOptions, add_cache_options, cache_options
from tunegate.errors import ConfigError
from tunegate.gate_arguments import add_gate_options
from tunegate.settings import Overrides, Settings

Command = Literal[
    "init",
    "doctor",
    "demo",
    "run",
    "detect",
    "plan",
    "tune",
    "gate",
    "compare",
    "bench-rules",
    "selftest",
    "confirm",
    "history",
    "cache",
]


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """A command line that was understood. What a command does not take has its default."""

    command: Command
    settings: Settings
    force: bool = False
    shard: int = 0
    directory: Path = Path(".demo")
    compared: tuple[str, ...] = ()
    are_commands: bool = False
    data: Path = Path()
    model: Path | None = None
    selftest_minutes: float = 10.0
    runs: int = 500
    shapes: dict[str, tuple[int, ...]] = {}
    action: str = ""
    cache: CacheOptions = CacheOptions()


def parse(arguments: Sequence[str]) -> Invocation:
    """Raises ConfigError for what cannot be understood, SystemExit after --help or --version."""
    given = vars(parser().parse_args(arguments))
    command: Command = given.pop("command")
    overrides = Overrides(**_taken(given, Overrides))
    settings = Settings(overrides=overrides, **_taken(given, Settings))
    cache = cache_options(given) if command == "cache" else CacheOptions()
    return Invocation(
        command=command,
        settings=settings,
        compared=tuple(given.pop("compared", ())),
        shapes=dict(given.pop("shapes", None) or ()),
        cache=cache,
        **_taken(given, Invocation),
    )


def parser() -> argparse.ArgumentParser:
    """Every command and option, with its help."""
    top = _Parser(prog="tunegate", description="Keeps compiled models fast through CI.")
    top.add_argument("--version", action="version", version=f"tunegate {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    _add(commands, "init", "write a tunegate.yaml and a workflow for the models found here")
    _add(commands, "doctor", "check versions, devices, cache and configuration")
    _add(commands, "demo", "play three pull requests in a throw-away repository")
    _add(commands, "run", "detect, plan, tune and gate in one process")
    _add(commands, "detect", "say which models a change touches")
    _add(commands, "plan", "look up the cache and share out the budget")
    _add(commands, "tune", "tune one shard of the plan")
    _add(commands, "gate", "build both sides, measure them and decide")
    _add(commands, "compare", "gate one model, artifact or command against another")
    _add(commands, "bench-rules", "show what gates would have said about recorded launches")
    _add(commands, "selftest", "find out which margin this machine can decide")
    _add(commands, "confirm", "let a verdict fail only where a second machine's fails too")
    _add(commands, "history", "show the latencies of earlier runs as a page")
    cache = commands.add_parser("cache", help="look into the cache, and maintain it")
    actions = cache.add_subparsers(metavar="COMMAND", required=True)
    for action, help_text in ACTIONS.items():
        _add(actions, "cache", help_text, action=action)
    return top


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message}. See: {self.prog} --help")


def _add(
    commands: argparse._SubParsersAction[_Parser],
    command: Command,
    help_text: str,
    *,
    action: str = "",
) -> None:
    # An abbreviation that is clear today would be another option tomorrow.
    options = commands.add_parser(
        action or command, help=help_text, description=help_text, allow_abbrev=False
    )
    options.set_defaults(command=command, action=action)
    _add_everywhere(options)
    # What plan.json decided, the later stages do not take again: an option that did nothing would
    # be believed.
    if command in {"run", "plan", "detect"}:
        _add_revisions(options)
    if command in {"tune", "gate"}:
        _add_planned_revisions(options)
    if command in {"run", "plan", "compare"}:
        _add_budget(options)
    if command in {"run", "plan", "gate", "compare"}:
        options.add_argument(
            "--margin-percent", type=positive, metavar="PERCENT", help="the slowdown that fails"
        )
    if command not in {"init", "detect", "demo", "gate", "bench-rules", "selftest", "confirm"}:
        _add_cache(options)
    _add_own(options, command)
    add_cache_options(action, options)


def _add_everywhere(options: argparse.ArgumentParser) -> None:
    options.add_argument(
        "--json", action="store_true", dest="as_json", help="the artifact on stdout"
    )
    options.add_argument(
        "--config", type=Path, metavar="FILE", help="default: tunegate.yaml of the repository"
    )
    options.add_argument(
        "--out", type=Path, metavar="DIR", help="default: .tunegate", default=Path(".tunegate")
    )
    options.add_argument(
        "--repository", type=Path, metavar="DIR", help="default: .", default=Path()
    )
    options.add_argument("-v", "--verbose", action="store_true", help="the traceback of an error")


def _add_revisions(options: argparse.ArgumentParser) -> None:
    base = options.add_mutually_exclusive_group()
    base.add_argument("--base", metavar="REV", help="what to compare with; default: the merge base")
    base.add_argument(
        "--since-release",
        action="store_true",
        help="compare with the release before (gate.release-tags), by gate.release-margin-percent",
    )
    options.add_argument("--head", metavar="REV", help="what to check; default: HEAD")
    options.add_argument(
        "--policy", metavar="REV", help="whose configuration judges; default: the base's"
    )


def _add_planned_revisions(options: argparse.ArgumentParser) -> None:
    options.add_argument("--base", metavar="REV", help="refuse a plan that has another base")
    options.add_argument("--policy", metavar="REV", help="refuse a plan judged by another commit")
    options.add_argument(
        "--head", metavar="REV", help="refuse a plan that has another head; default: HEAD"
    )


def _add_budget(options: argparse.ArgumentParser) -> None:
    options.add_argument("--minutes", type=not_negative, metavar="N", help="cap on tuning time")
    options.add_argument("--usd", type=not_negative, metavar="N", help="cap on tuning cost")
    options.add_argument("--trials", type=whole, metavar="N", help="cap on measured candidates")


def _add_cache(options: argparse.ArgumentParser) -> None:
    options.add_argument("--cache-url", metavar="URL", help="s3://bucket/prefix or a directory")
    options.add_argument(
        "--cache-endpoint-url", metavar="URL", help="of an S3 that is not Amazon's"
    )
    options.add_argument(
        "--cache-mode", choices=("off", "ro", "rw"), help="read, or read and write"
    )
    options.add_argument("--zone", metavar="NAME", help="the part of the cache this run writes")


def _add_own(options: argparse.ArgumentParser, command: Command) -> None:
    if command == "init":
        options.add_argument("--force", action="store_true", help="overwrite existing files")
    if command == "demo":
        options.add_argument(
            "--directory", type=Path, metavar="DIR", help="default: .demo", default=Path(".demo")
        )
    if command == "plan":
        options.add_argument("--shards", type=count, metavar="N", help="how many runners tune")
    if command == "tune":
        options.add_argument(
            "--shard", type=whole, metavar="N", help="which shard of plan.json", default=0
        )
    if command == "history":
        options.add_argument(
            "--runs", type=count, metavar="N", help="the latest N; default: 500", default=500
        )
    add_gate_options(command, options)


def _taken(given: dict[str, Any], kind: type[msgspec.Struct]) -> dict[str, Any]:
    names = [name for name in kind.__struct_fields__ if name in given]
    return {name: given.pop(name) for name in names}
