"""The words of a report for what runs a layer, and where its schedule comes from."""

from __future__ import annotations

from tunegate.artifacts.measurements import TaskDifference

SOURCE_WORDS = {
    "exact": "tuned before",
    "transfer": "untuned, of another shape",
    "search": "tuned now",
    "default": "default schedule",
    "library": "ONNX Runtime",
    "own-zone": "own zone, measured now",
    "prior": "picked by the prior",
    "tiles": "lower precision",
    "claimed": "own zone, unverified",
}


def run_by(difference: TaskDifference) -> str:
    """Returns the runtime of the layer, and the source of its schedule if it has one."""
    if difference.source == "library":
        return difference.library
    return f"TVM, {SOURCE_WORDS[difference.source]}"
