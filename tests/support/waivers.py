"""Waivers as a file would have them."""

import datetime

from tunegate.artifacts.measurements import Interval
from tunegate.artifacts.verdicts import Waiver
from tunegate.decide.waiving import Slowdown

TODAY = datetime.date(2026, 7, 1)


def make_waiver(**changes: object) -> Waiver:
    fields = {
        "model": "models/m.onnx",
        "target": "cpu",
        "ceiling_percent": 8.0,
        "expires": TODAY + datetime.timedelta(days=30),
        "issue": "https://example.com/17",
        "reason": "a wider head, agreed with product",
        **changes,
    }
    return Waiver(**fields)  # type: ignore[arg-type]  # a builder


def slowed(change: Interval) -> tuple[Slowdown, ...]:
    """A median that is proven to be slower by so much."""
    return (Slowdown("the median", change, is_proven=True),)
