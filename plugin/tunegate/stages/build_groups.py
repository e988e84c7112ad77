"""Which candidates are built beside each other."""

from __future__ import annotations

from tunegate.artifacts.candidates import CandidateBuild, Candidates


def built_together(candidates: Candidates) -> list[list[CandidateBuild]]:
    """The candidates of all targets in groups: those of one runtime that compiles nothing may be
    built beside each other, and cores that one build leaves idle do the next. A compiler times what
    it builds, so that its candidates come one after the other."""
    groups: list[list[CandidateBuild]] = []
    for each in _distinct(candidates):
        last = groups[-1][0] if groups else None
        if last is not None and not each.is_tuned and last.runtime == each.runtime:
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def _distinct(candidates: Candidates) -> list[CandidateBuild]:
    """One with settings of its own for a target is another."""
    every = [candidate for each in candidates.values() for candidate in each]
    return [candidate for at, candidate in enumerate(every) if candidate not in every[:at]]
