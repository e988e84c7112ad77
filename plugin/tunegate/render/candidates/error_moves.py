"""A larger error that no latency pays for, in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tunegate.artifacts.error_estimates import SideError, What
from tunegate.artifacts.verdicts import Finding
from tunegate.render.candidates.accuracy import error_in_words

ERROR_MOVED = "error-moved"
"""The name of the finding in SARIF and annotations."""


def error_moves(finding: Finding, code: Callable[[str], str]) -> Iterator[str]:
    """Yields a sentence for each part of the budget; `code` marks names."""
    shipped = finding.accuracy
    if shipped is None or shipped.base is None or shipped.head is None:
        return
    where = f"{code(finding.model)} on {code(finding.target)}"
    for what in shipped.moved:
        went = "fell" if what == "min-agreement" else "rose"
        before, after = _told(shipped.base, what), _told(shipped.head, what)
        yield (
            f"{where}: the {what} of what ships {went} from {before} to {after}, "
            "and the head is not clearly faster"
        )


def _told(side: SideError, what: What) -> str:
    estimate = next((each for each in side.estimates if each.what == what), None)
    return "float32" if estimate is None else error_in_words(estimate)
