"""The time of a side that only one build runs, so that the next run knows it."""

from __future__ import annotations

import msgspec

from tunegate.artifacts.builds import Build, CandidateTime, RuntimeChoice
from tunegate.errors import MeasurementError
from tunegate.measuring.race import Launching


def unopposed(only: Build, choice: RuntimeChoice, launching: Launching) -> Build:
    """The build; its choice is this one with its time. Another run would find no other build
    either, and is spared those that are refused. One that cannot be timed is not remembered."""
    try:
        ms = launching.benchmarker.single_ms(launching.out / only.directory)
    except MeasurementError:
        return msgspec.structs.replace(only, choice=choice)
    time = CandidateTime(candidate=only.candidate, title=only.title, ms=ms)
    choice = msgspec.structs.replace(choice, times=(time,), is_complete=True)
    return msgspec.structs.replace(only, choice=choice)
