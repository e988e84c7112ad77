"""Revocations: the records that no longer count. Pure."""

import msgspec

from tunegate_cache.format.records import StoredRecord


class Revocation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A record is revoked if it matches everything given here: the id of its signing key, the
    repository or CI run it came from, and when it was measured (seconds since 1970)."""

    key: str = ""
    repository: str = ""
    run: str = ""
    since: int = 0
    until: int = 0

    def covers(self, stored: StoredRecord) -> bool:
        source, measured_at = stored.record.source, stored.record.measured_at
        return (
            self != Revocation()
            and self.key in {"", stored.signer}
            and self.repository in {"", source.repository}
            and self.run in {"", source.run}
            and self.since <= measured_at
            and (not self.until or measured_at <= self.until)
        )


def is_revoked(stored: StoredRecord, revocations: tuple[Revocation, ...]) -> bool:
    return any(revocation.covers(stored) for revocation in revocations)
