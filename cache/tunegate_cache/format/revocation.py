"""Revocations, and dates that cannot be: the records that no longer count as they are. Pure."""

import msgspec

from tunegate_cache.format.records import StoredRecord

SKEW_SECONDS = 24 * 3600
"""A record's date may be this far ahead of the reader's clock: zones of time are mistaken."""


class Revocation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A record is revoked if it matches everything given here: the id of its signing key, the
    repository or CI run it came from, and when it was measured (seconds since 1970)."""

    key: str = ""
    repository: str = ""
    run: str = ""
    since: int = 0
    until: int = 0

    def covers(self, stored: StoredRecord, latest: int) -> bool:
        """Returns whether it revokes the record. A date after `latest` says nothing, so that every
        limit of time covers it."""
        source, measured_at = stored.record.source, stored.record.measured_at
        return (
            self != Revocation()
            and self.key in {"", stored.signer}
            and self.repository in {"", source.repository}
            and self.run in {"", source.run}
            and (
                measured_at > latest
                or (self.since <= measured_at and (not self.until or measured_at <= self.until))
            )
        )


def counted(
    stored: StoredRecord, revocations: tuple[Revocation, ...], latest: int
) -> StoredRecord | None:
    """Returns the record as it counts, None if it is revoked. One that is dated after `latest`
    counts as the oldest: it would hide all that is measured until then."""
    if any(revocation.covers(stored, latest) for revocation in revocations):
        return None
    if stored.record.measured_at <= latest:
        return stored
    oldest = msgspec.structs.replace(stored.record, measured_at=0)
    return StoredRecord(oldest, stored.text, stored.signer)
