"""Followers of a sum, computed where the sum is written."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tvm.s_tir.schedule import ScheduleError


def inline_followers(schedule: Any, written: Any) -> None:
    """Inlines what follows the block, as far as that is possible."""
    with suppress(ScheduleError):
        while followers := schedule.get_consumers(written):
            for follower in followers:
                if schedule.get_consumers(follower):
                    schedule.compute_inline(follower)
                else:
                    schedule.reverse_compute_inline(follower)
