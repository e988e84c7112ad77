"""A bisection in lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from tunegate.artifacts.bisections import Bisection, MeasuredCommit
from tunegate.wording import plural

_SHORT_ID = 12


def bisection_lines(found: Bisection) -> Iterator[str]:
    """Yields a line for each commit that was asked about, then the answer."""
    place = f"{found.model} on {found.target}"
    for step in found.steps:
        yield _step_line(step)
    if found.finding != "real":
        yield f"{place}: {_NOTHING[found.finding]} ({found.reason})"
        return
    yield f"{place}: {found.reason} from {found.good[:_SHORT_ID]} to {found.bad[:_SHORT_ID]}"
    of_all = f"{plural(found.measurements, 'measurement')} for {plural(found.commits, 'commit')}"
    named = [
        f'{commit[:_SHORT_ID]} "{subject}"'
        for commit, subject in zip(found.suspects, found.subjects, strict=True)
    ]
    if len(named) == 1:
        yield f"slow since {named[0]} ({of_all})"
    else:
        yield f"slow since one of {', '.join(named)}: the others cannot be measured ({of_all})"
    if found.layers:
        yield f"slower layers: {', '.join(found.layers)}"


_NOTHING = {
    "noise": "nothing to find",
    "method": "nothing to find",
    "machine": "this machine cannot tell whether there is anything to find",
}


def _step_line(step: MeasuredCommit) -> str:
    change = step.change_percent
    told = f" {change.center:+.1f}% ({change.low:+.1f} to {change.high:+.1f}%)" if change else ""
    why = f" ({step.reason})" if step.reason else ""
    return f'{step.commit[:_SHORT_ID]} {step.answer}{told}{why} "{step.subject}"'
