"""How a slowdown is accepted: what to paste, and where."""

from __future__ import annotations

import json

from tunegate.artifacts.waivers import Waiver, WaiverOffer
from tunegate.render.units import plural

_MAX_WAIVERS = 10


def waiver_text(offer: WaiverOffer) -> str:
    """Markdown with a block of YAML to paste. `issue` and `reason` are empty: a file in which they
    are is refused."""
    shown = offer.waivers[:_MAX_WAIVERS]
    rest = len(offer.waivers) - len(shown)
    more = f" {plural(rest, 'more waiver')} would be needed." if rest else ""
    entries = "\n".join(_entry(each) for each in shown)
    return (
        f"To accept it, put this into `tunegate-waivers.yaml` and fill in issue and reason. "
        f"{_where(offer)}{more}\n\n```yaml\nwaivers:\n{entries}\n```"
    )


def _where(offer: WaiverOffer) -> str:
    if offer.counts_from == "head":
        return "The file of this branch counts."
    return "Merge it first, in a change of its own: a change cannot waive its own slowdown."


def _entry(waiver: Waiver) -> str:
    """No name in quotes can end the block."""
    return "\n".join(
        (
            f"  - model: {_quoted(waiver.model)}",
            f"    target: {_quoted(waiver.target)}",
            f"    ceiling-percent: {waiver.ceiling_percent:g}",
            f"    expires: {waiver.expires}",
            '    issue: ""',
            '    reason: ""',
        )
    )


def _quoted(name: str) -> str:
    """A string of YAML: one of JSON, but for pairs of surrogates, which YAML takes for two."""
    return "".join(
        each if each.isprintable() else f"\\U{ord(each):08x}"
        for each in json.dumps(name, ensure_ascii=False)
    )
