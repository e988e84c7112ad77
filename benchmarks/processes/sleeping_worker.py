"""A worker whose device takes its time and does nothing: for scaling.py,
which starts up to 64 of them."""

from __future__ import annotations

import hashlib
import os
import time

import msgspec

from tunegate.tune.protocol import Measure, Measured

Request = Measure
BUILDING_SHARE = 0.8
SECONDS = float(os.environ.get("SECONDS_PER_CANDIDATE", "2"))


def handle_request(request: Measure) -> Measured:
    """Takes SECONDS, 25% more or less; the same decisions always have the same latency."""
    digest = hashlib.sha256(msgspec.json.encode(request.candidate.schedule)).digest()
    seconds = SECONDS * (0.75 + 0.5 * digest[0] / 255)
    time.sleep(seconds)
    return Measured(
        number=request.candidate.number,
        status="ok",
        nanoseconds=(1_000_000 + 40_000 * digest[1],) * 3,
        build_seconds=BUILDING_SHARE * seconds,
        run_seconds=(1 - BUILDING_SHARE) * seconds,
    )
