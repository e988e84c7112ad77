"""The sources of a schedule."""

from __future__ import annotations

from typing import Literal

ScheduleSource = Literal[
    "exact", "transfer", "search", "default", "own-zone", "claimed", "prior", "tiles"
]
"""The origin of a schedule. `own-zone` was proposed by the pull request's own zone and measured
in this run, `claimed` was not. `prior` was picked by the prior, and nobody has measured it.
`tiles` is our own kernel in lower precision."""
UNMEASURED: tuple[ScheduleSource, ...] = ("transfer", "claimed", "prior")
"""Sources of schedules that were not measured for their kernel, or not by anybody who is
trusted."""
