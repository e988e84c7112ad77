"""The words of a report for where a schedule comes from."""

from __future__ import annotations

SOURCE_WORDS = {
    "exact": "tuned before",
    "transfer": "transferred",
    "search": "tuned now",
    "default": "untuned",
    "library": "ONNX Runtime",
    "own-zone": "own zone, measured now",
    "prior": "picked by the prior, unverified",
    "tiles": "lower precision",
    "claimed": "own zone, unverified",
}
