"""The changes of a gate's own rules, shown before everything else."""

from __future__ import annotations

from collections.abc import Callable

from tunegate.artifacts.changes import PolicyChange
from tunegate.artifacts.verdicts import Verdict
from tunegate.wording import plural

POLICY_CHANGE = "policy-change"
SHOWN_CHANGES = 30
SHOWN_FILES = 50


def policy_lines(verdict: Verdict, name: Callable[[str], str] = str) -> list[str]:
    """A sentence for each policy change; `name` escapes for the medium."""
    lines = [described_change(change, name) for change in verdict.policy_changes[:SHOWN_CHANGES]]
    rest = len(verdict.policy_changes) - len(lines)
    return [*lines, f"{POLICY_CHANGE}: … and {rest} more"] if rest > 0 else lines


def described_change(change: PolicyChange, name: Callable[[str], str] = str) -> str:
    """Returns a change in words, with its old and new value, and when it counts."""
    places = [name(place) for place in (change.model, change.target) if place]
    where = f" of {' on '.join(places)}" if places else ""
    values = f"{name(change.old)} → {name(change.new)}"
    return (
        f"{POLICY_CHANGE}, {change.effect}: {name(change.key)}{where}: {values} ({_counts(change)})"
    )


def summed_up(verdict: Verdict) -> str:
    """Returns a sentence for the headline, or an empty string where nothing weakens the gate."""
    weakening = sum(change.weakens for change in verdict.policy_changes)
    if not weakening:
        return ""
    effect = "forbidden by gate.policy-changes" if verdict.policy_fails else "named below"
    return f"{plural(weakening, POLICY_CHANGE)}, {effect}"


def uncovered_line(paths: tuple[str, ...], name: Callable[[str], str] = str) -> str:
    """The model files that no rule covers; an empty string where there are none."""
    if not paths:
        return ""
    shown = ", ".join(name(path) for path in paths[:SHOWN_FILES])
    rest = len(paths) - SHOWN_FILES
    more = f" and {rest} more, all in changes.json" if rest > 0 else ""
    return f"No rule covers {plural(len(paths), 'model file')}: {shown}{more}."


def _counts(change: PolicyChange) -> str:
    if change.counts == "now":
        return "counts now"
    return "no effect on this verdict, counts once it is merged"
