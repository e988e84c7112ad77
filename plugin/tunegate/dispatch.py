"""What each command of the command line runs.

Each is imported when it is asked for: drawing and statistics take two seconds to import, and most
commands need neither.
"""

from __future__ import annotations

from collections.abc import Callable

from tunegate.arguments import Command, Invocation
from tunegate.cache_dispatch import CACHE_ACTIONS


def _init(asked: Invocation) -> int:
    from tunegate.commands import init

    return init.run(asked.settings, force=asked.force)


def _doctor(asked: Invocation) -> int:
    from tunegate.commands import doctor

    return doctor.run(asked.settings)


def _demo(asked: Invocation) -> int:
    from tunegate.commands import demo

    return demo.run_demo(asked.settings, directory=asked.directory)


def _run(asked: Invocation) -> int:
    from tunegate.commands import run

    return run.run(asked.settings)


def _detect(asked: Invocation) -> int:
    from tunegate.commands import detect

    return detect.run(asked.settings)


def _plan(asked: Invocation) -> int:
    from tunegate.commands import plan

    return plan.run(asked.settings)


def _tune(asked: Invocation) -> int:
    from tunegate.commands import tune

    return tune.run(asked.settings, shard=asked.shard)


def _gate(asked: Invocation) -> int:
    from tunegate.commands import gate

    return gate.run(asked.settings)


def _compare(asked: Invocation) -> int:
    from tunegate.commands import compare

    return compare.run(
        asked.settings,
        compared=asked.compared,
        shapes=asked.shapes,
        are_commands=asked.are_commands,
    )


def _bench_rules(asked: Invocation) -> int:
    from tunegate.commands import bench_rules

    return bench_rules.run(asked.data)


def _selftest(asked: Invocation) -> int:
    from tunegate.commands import selftest

    return selftest.run(
        asked.settings,
        model=asked.model,
        shapes=asked.shapes,
        minutes=asked.selftest_minutes,
    )


def _confirm(asked: Invocation) -> int:
    from tunegate.commands import confirm

    return confirm.run(asked.settings, verdicts=asked.compared)


def _history(asked: Invocation) -> int:
    from tunegate.commands import history

    return history.run(asked.settings, runs=asked.runs)


def _cache(asked: Invocation) -> int:
    return CACHE_ACTIONS[asked.action](asked)


COMMANDS: dict[Command, Callable[[Invocation], int]] = {
    "init": _init,
    "doctor": _doctor,
    "demo": _demo,
    "run": _run,
    "detect": _detect,
    "plan": _plan,
    "tune": _tune,
    "gate": _gate,
    "compare": _compare,
    "bench-rules": _bench_rules,
    "selftest": _selftest,
    "confirm": _confirm,
    "history": _history,
    "cache": _cache,
}
