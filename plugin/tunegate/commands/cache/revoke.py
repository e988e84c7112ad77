"""`tunegate cache revoke`: believe some records no longer."""

from __future__ import annotations

from tunegate.cache_admin import answering, open_cache_admin
from tunegate.cli.commands.cache.revoke import RevokeOptions
from tunegate.commands.cache.compact import show_compactions
from tunegate.errors import PASS, ConfigError
from tunegate_cache.format.revocation import Revocation


def run(options: RevokeOptions) -> int:
    """Revokes records in every zone, unless one is named. Raises ConfigError
    for a rule that names nothing."""
    revocation = _revocation(options)
    if revocation == Revocation():
        message = (
            "what is to be revoked? Give --key, --of-repository, --run, --since or --until; "
            "several must all fit."
        )
        raise ConfigError(message)
    settings = options.settings
    admin = open_cache_admin(settings)
    with answering(admin.config):
        groups = admin.groups(settings.overrides.get("cache.zone"))
        done = tuple(admin.compactor(group).run(revoke=[revocation]) for group in groups)
    show_compactions(settings, admin.config.url, done)
    return PASS


def _revocation(options: RevokeOptions) -> Revocation:
    return Revocation(
        key=options.key,
        repository=options.of_repository,
        run=options.run,
        since=options.since or 0,
        until=options.until or 0,
    )
