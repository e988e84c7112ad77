"""The command line: what was asked, done, and turned into an exit code.

The only place that catches everything. stdout carries the product, stderr the talk.
"""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from tunegate.arguments import Command, Invocation, parse
from tunegate.commands import (
    bench_rules,
    cache_compact,
    cache_copy,
    cache_doctor,
    cache_export,
    cache_fsck,
    cache_gc,
    cache_import,
    cache_pin,
    cache_probe,
    cache_promote,
    cache_revoke,
    cache_stats,
    cache_why_miss,
    compare,
    confirm,
    demo,
    detect,
    doctor,
    gate,
    init,
    plan,
    run,
    selftest,
    tune,
)
from tunegate.edges.signals import cancellable
from tunegate.errors import BUG, CANCELLED, PASS, USAGE, TunegateError

_COMMANDS: dict[Command, Callable[[Invocation], int]] = {
    "init": lambda asked: init.run(asked.settings, force=asked.force),
    "doctor": lambda asked: doctor.run(asked.settings),
    "demo": lambda asked: demo.run_demo(asked.settings, directory=asked.directory),
    "run": lambda asked: run.run(asked.settings),
    "detect": lambda asked: detect.run(asked.settings),
    "plan": lambda asked: plan.run(asked.settings),
    "tune": lambda asked: tune.run(asked.settings, shard=asked.shard),
    "gate": lambda asked: gate.run(asked.settings),
    "compare": lambda asked: compare.run(
        asked.settings,
        compared=asked.compared,
        shapes=asked.shapes,
        are_commands=asked.are_commands,
    ),
    "bench-rules": lambda asked: bench_rules.run(asked.data),
    "selftest": lambda asked: selftest.run(
        asked.settings,
        model=asked.model,
        shapes=asked.shapes,
        minutes=asked.selftest_minutes,
    ),
    "confirm": lambda asked: confirm.run(asked.settings, verdicts=asked.compared),
    "cache": lambda asked: _CACHE_ACTIONS[asked.action](asked),
}
_CACHE_ACTIONS: dict[str, Callable[[Invocation], int]] = {
    "stats": lambda asked: cache_stats.run(asked.settings),
    "why-miss": lambda asked: cache_why_miss.run(asked.settings, task=asked.cache.task),
    "doctor": lambda asked: cache_doctor.run(asked.settings),
    "probe": lambda asked: cache_probe.run(asked.settings),
    "fsck": lambda asked: cache_fsck.run(asked.settings, repair=asked.cache.repair),
    "gc": lambda asked: cache_gc.run(
        asked.settings, dry_run=asked.cache.dry_run, grace_hours=asked.cache.grace_hours
    ),
    "compact": lambda asked: cache_compact.run(asked.settings),
    "revoke": lambda asked: cache_revoke.run(asked.settings, revocation=asked.cache.revocation),
    "promote": lambda asked: cache_promote.run(asked.settings, from_zone=asked.cache.from_zone),
    "pin": lambda asked: cache_pin.run(asked.settings, remove=asked.cache.remove),
    "export": lambda asked: cache_export.run(
        asked.settings, directory=asked.cache.directory or Path()
    ),
    "import": lambda asked: cache_import.run(
        asked.settings, directory=asked.cache.directory or Path()
    ),
    "pull": lambda asked: cache_copy.run_pull(
        asked.settings, directory=asked.cache.directory or Path()
    ),
    "push": lambda asked: cache_copy.run_push(asked.settings, directory=asked.cache.directory),
}


def entry() -> None:
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments ask; the exit code of the contract comes back."""
    verbose = "-v" in arguments or "--verbose" in arguments
    try:
        with cancellable():
            asked = parse(arguments)
            return _COMMANDS[asked.command](asked)
    except SystemExit as stop:  # argparse, after --help or --version
        return PASS if not stop.code else USAGE
    except KeyboardInterrupt:
        return _stopped("cancelled; what was finished is kept", CANCELLED, verbose=verbose)
    except TunegateError as error:
        return _stopped(str(error), error.exit_code, verbose=verbose)
    except Exception as error:  # noqa: BLE001 -- whatever it is, the user gets one line and a log
        return _stopped(_bug(error), BUG, verbose=verbose)


def _stopped(text: str, exit_code: int, *, verbose: bool) -> int:
    if verbose:
        traceback.print_exc(file=sys.stderr)
    sys.stderr.write(f"tunegate: error: {text}\n")
    return exit_code


def _bug(error: Exception) -> str:
    with tempfile.NamedTemporaryFile(
        "w", prefix="tunegate-", suffix=".log", delete=False, encoding="utf-8"
    ) as log:
        traceback.print_exc(file=log)
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    return f"a bug of tunegate ({what}). Please report it with the log {Path(log.name)}."
