"""The result of each candidate of a cell, for its finding."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tunegate.artifacts.builds import Build, CandidateTime, RuntimeChoice
from tunegate.artifacts.verdicts import CandidateOutcome


def candidate_outcomes(head: Build | None) -> tuple[CandidateOutcome, ...]:
    """Returns the candidate that ships first, then those that are slower, then those that do not
    run the model."""
    if head is None or not head.candidate:
        return ()
    return tuple(_outcomes(head, head.choice or RuntimeChoice()))


def _outcomes(head: Build, choice: RuntimeChoice) -> Iterator[CandidateOutcome]:
    times = {time.candidate: _outcome(time) for time in choice.times}
    if head.error is None:
        unmeasured = CandidateOutcome(candidate=head.candidate, title=head.title, ships=True)
        ours = times.pop(head.candidate, unmeasured)
        if head.error_estimate:
            error = head.error_estimate[0]
            ours = msgspec.structs.replace(ours, error=error, has_unknown_error=False)
        yield msgspec.structs.replace(ours, ships=True, reason=choice.reason)
    yield from times.values()
    for each in choice.refused:
        yield CandidateOutcome(
            candidate=each.candidate,
            title=each.title,
            ships=False,
            reason=each.reason,
            error=each.error,
        )


def _outcome(time: CandidateTime) -> CandidateOutcome:
    return CandidateOutcome(
        candidate=time.candidate,
        title=time.title,
        ships=False,
        ms=time.ms,
        low_ms=time.low_ms,
        high_ms=time.high_ms,
        error=time.error,
        has_unknown_error=time.has_unknown_error,
    )
