"""What each action of `tunegate cache` runs.

Each is imported when it is asked for: drawing and statistics take two seconds to import, and most
commands need neither.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tunegate.arguments import Invocation


def _stats(asked: Invocation) -> int:
    from tunegate.commands.cache import stats as cache_stats

    return cache_stats.run(asked.settings)


def _why_miss(asked: Invocation) -> int:
    from tunegate.commands.cache import why_miss as cache_why_miss

    return cache_why_miss.run(asked.settings, task=asked.cache.task)


def _doctor(asked: Invocation) -> int:
    from tunegate.commands.cache import doctor as cache_doctor

    return cache_doctor.run(asked.settings)


def _probe(asked: Invocation) -> int:
    from tunegate.commands.cache import probe as cache_probe

    return cache_probe.run(asked.settings)


def _fsck(asked: Invocation) -> int:
    from tunegate.commands.cache import fsck as cache_fsck

    return cache_fsck.run(asked.settings, repair=asked.cache.repair)


def _gc(asked: Invocation) -> int:
    from tunegate.commands.cache import gc as cache_gc

    return cache_gc.run(
        asked.settings, dry_run=asked.cache.dry_run, grace_hours=asked.cache.grace_hours
    )


def _compact(asked: Invocation) -> int:
    from tunegate.commands.cache import compact as cache_compact

    return cache_compact.run(asked.settings)


def _revoke(asked: Invocation) -> int:
    from tunegate.commands.cache import revoke as cache_revoke

    return cache_revoke.run(asked.settings, revocation=asked.cache.revocation)


def _promote(asked: Invocation) -> int:
    from tunegate.commands.cache import promote as cache_promote

    return cache_promote.run(asked.settings, from_zone=asked.cache.from_zone)


def _pin(asked: Invocation) -> int:
    from tunegate.commands.cache import pin as cache_pin

    return cache_pin.run(asked.settings, remove=asked.cache.remove)


def _export(asked: Invocation) -> int:
    from tunegate.commands.cache import export as cache_export

    return cache_export.run(asked.settings, directory=asked.cache.directory or Path())


def _import(asked: Invocation) -> int:
    from tunegate.commands.cache import import_records as cache_import

    return cache_import.run(asked.settings, directory=asked.cache.directory or Path())


def _pull(asked: Invocation) -> int:
    from tunegate.commands.cache import copy as cache_copy

    return cache_copy.run_pull(asked.settings, directory=asked.cache.directory or Path())


def _push(asked: Invocation) -> int:
    from tunegate.commands.cache import copy as cache_copy

    return cache_copy.run_push(asked.settings, directory=asked.cache.directory)


CACHE_ACTIONS: dict[str, Callable[[Invocation], int]] = {
    "stats": _stats,
    "why-miss": _why_miss,
    "doctor": _doctor,
    "probe": _probe,
    "fsck": _fsck,
    "gc": _gc,
    "compact": _compact,
    "revoke": _revoke,
    "promote": _promote,
    "pin": _pin,
    "export": _export,
    "import": _import,
    "pull": _pull,
    "push": _push,
}
