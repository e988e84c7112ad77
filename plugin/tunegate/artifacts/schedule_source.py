"""The sources of a schedule."""

from __future__ import annotations

from typing import Literal

ScheduleSource = Literal["exact", "transfer", "search", "default", "own-zone", "claimed"]
"""The origin of a schedule. `own-zone` was proposed by the pull request's own zone and measured
in this run, `claimed` was not."""
