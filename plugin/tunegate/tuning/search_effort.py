"""How much is looked at to find a batch: as much as the batch is worth.

Batches follow what is left of the budget, and this follows the batch, so that few trials of a large model are
not held up by searches for each of them.
"""

from __future__ import annotations

from typing import NamedTuple

_DRAFTS_PER_CANDIDATE = 64
_LEAST_DRAFTS, _MOST_DRAFTS = 128, 512
_CANDIDATES_PER_GENERATION = 4
_MOST_GENERATIONS = 2


class SearchEffort(NamedTuple):
    """`drafts` of the first pool, and `generations` of pools made from the best of the pool before."""

    drafts: int
    generations: int


def effort_for(candidates: int) -> SearchEffort:
    """For a batch of so many."""
    drafts = min(_MOST_DRAFTS, max(_LEAST_DRAFTS, _DRAFTS_PER_CANDIDATE * candidates))
    return SearchEffort(drafts, min(_MOST_GENERATIONS, candidates // _CANDIDATES_PER_GENERATION))
