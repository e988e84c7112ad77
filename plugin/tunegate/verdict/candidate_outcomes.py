"""What became of each candidate of a cell, for its finding."""

from __future__ import annotations

from collections.abc import Iterator

from tunegate.artifacts.builds import Build, RuntimeChoice
from tunegate.artifacts.verdicts import CandidateOutcome


def candidate_outcomes(head: Build | None) -> tuple[CandidateOutcome, ...]:
    """The candidate that ships first, then those that are slower, then those that do not run it."""
    if head is None or not head.candidate:
        return ()
    return tuple(_outcomes(head, head.choice or RuntimeChoice()))


def _outcomes(head: Build, choice: RuntimeChoice) -> Iterator[CandidateOutcome]:
    if head.error is None:
        yield CandidateOutcome(
            candidate=head.candidate,
            title=head.title,
            ships=True,
            ms=choice.ms_of(head.candidate),
            reason=choice.reason,
        )
    for time in choice.times:
        if time.candidate != head.candidate:
            yield CandidateOutcome(
                candidate=time.candidate, title=time.title, ships=False, ms=time.ms
            )
    for each in choice.refused:
        yield CandidateOutcome(
            candidate=each.candidate, title=each.title, ships=False, reason=each.reason
        )
