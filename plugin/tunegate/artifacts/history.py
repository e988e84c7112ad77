"""The history of a run: a line for each model on each target, which outlives the report.

Lines lie in the shared cache, where others write too: the limits of these types are what a line has
to keep to be shown at all.
"""

from typing import Annotated, Literal

import msgspec

from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.measurements import Interval
from tunegate.artifacts.verdicts import Status

MAX_TEXT = 1000
HistoryStatus = Status | Literal["warmed", "cancelled", "aborted"]
"""The status of a model in the history; `warmed` was tuned and not compared. A run that was
`cancelled`, or `aborted` by an error, says nothing of its models but what it spent."""
Instant = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799)]
"""Seconds since 1970, as far as calendars go."""
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
_Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
_Address = Annotated[
    str, msgspec.Meta(max_length=MAX_TEXT, pattern=r"^(https?://[^\s@<>\"'`\\]+)?\Z")
]
"""A page of a CI. Another scheme than HTTP could be code, and before an `@` stands a secret."""


class ModelCost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a model on a target in one run, and the savings by the cache.

    A task that several models use is shared evenly among them, so that the lines of a run add up to
    what it spent: counts are no whole numbers then. `hits` are the `tasks` that the cache had,
    `transfers` those of which it had another shape. `seconds` and `usd` went into tuning,
    `gate_seconds` and `gate_usd` into everything else: finding tasks, trying builds, choosing what
    ships, building and measuring it; where the measuring is divided among jobs, into building and
    measuring alone. What is saved is the least that tuning took of the hits, by their records.
    `gained_ms` is what tuning took off one inference of the head, by the sum of its operators, of
    those that ship compiled."""

    tasks: Amount = 0.0
    hits: Amount = 0.0
    transfers: Amount = 0.0
    trials: Amount = 0.0
    seconds: Amount = 0.0
    usd: Amount | None = None
    gate_seconds: Amount = 0.0
    gate_usd: Amount | None = None
    saved_trials: Amount = 0.0
    saved_seconds: Amount = 0.0
    saved_usd: Amount | None = None
    gained_ms: Amount = 0.0


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a run besides its verdict. `change` is the number of a pull request; the head
    `is_aside` where it is not on the default branch. `authored` is when the head was written, `at`
    when the run ended; `run_url` is its page in the CI, '' where there is none."""

    at: int
    repository: str = ""
    release: str = ""
    change: int | None = None
    is_aside: bool = False
    authored: int | None = None
    run_url: str = ""


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the history. `at` and `authored` are in seconds since 1970: the end of the run,
    and when the commit was written. `release` is the tag of the head, where it has one; `change`
    the number of its pull request. The head `is_aside` where it was on no default branch at that
    time. `target_key` is the start of the key that the cache has for the
    target. `versions` are those of the packages that decide what runs. `trials` are those of the
    whole run, `cost` is of this model alone. Lines of earlier versions lack everything from
    `repository` on."""

    schema: Literal[1] = 1
    at: Instant
    commit: _Text
    release: _Text = ""
    model: Annotated[ModelPath, msgspec.Meta(max_length=MAX_TEXT)]
    target: _Text
    device: _Text
    runtime: _Text
    status: HistoryStatus
    base_ms: Amount | None
    head_ms: Amount | None
    change_percent: Interval | None = None
    trials: int = 0
    repository: _Text = ""
    change: Annotated[int, msgspec.Meta(ge=0, le=2**53)] | None = None
    is_aside: bool = False
    authored: Instant | None = None
    run_url: _Address = ""
    target_key: _Text = ""
    reason: _Text = ""
    versions: Annotated[dict[_Text, _Text], msgspec.Meta(max_length=30)] = {}
    cost: ModelCost | None = None


class CostSum(msgspec.Struct, frozen=True, kw_only=True):
    """The summed costs and savings of the runs of a week, a repository or a model. Gains of two
    runs don't add: `gained_ms` of the cost is the most of one line, and `gain_usd` what tuning cost
    in that line."""

    name: str
    runs: int
    cost: ModelCost
    gain_usd: float | None = None
