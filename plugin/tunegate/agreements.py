"""What was agreed on beside the margin, read from the revisions that are compared."""

from __future__ import annotations

import datetime

from tunegate.artifacts.changes import Revisions
from tunegate.artifacts.waivers import Waiver
from tunegate.edges import waiver_trailers, waivers_file
from tunegate.errors import RevisionError
from tunegate.ports import Repository


def agreed_waivers(
    repository: Repository, revisions: Revisions, today: datetime.date, *, with_trailers: bool
) -> tuple[Waiver, ...]:
    """Those of the head's file, and of the commits between base and head where they count; a commit's
    goes before the file's. Raises ConfigError."""
    filed = waivers_file.parse_waivers(_text(repository, revisions.head), waivers_file.NAME, today)
    if not with_trailers or revisions.base is None:
        return filed
    trailers = repository.trailers(revisions.base, revisions.head, waiver_trailers.KEY)
    signed = waiver_trailers.parse_trailers(trailers, today)
    cells = {waiver.cell for waiver in signed}
    return (*signed, *(waiver for waiver in filed if waiver.cell not in cells))


def _text(repository: Repository, head: str) -> str:
    try:
        return repository.read(head, waivers_file.NAME).decode() if head else ""
    except RevisionError:
        return ""
