"""Instructions for accepting a slowdown: the text to paste, and its place."""

from __future__ import annotations

import json

from tunegate.artifacts.verdicts import WAIVERS_FILE, Waiver, WaiverOffer
from tunegate.wording import plural

_NEW_TITLE, _FILED_TITLE = "Accept it with a waiver", "Accept it by a change of its waiver"
_MAX_WAIVERS = 10


def accept_title(offer: WaiverOffer) -> str:
    """The title of the fold that has the waivers."""
    return _FILED_TITLE if _are_all_filed(offer) else _NEW_TITLE


def waiver_text(offer: WaiverOffer) -> str:
    """Markdown with a block of YAML to paste."""
    return f"{waiver_advice(offer, '`')}\n\n```yaml\n{waiver_yaml(offer)}\n```"


def waiver_advice(offer: WaiverOffer, mark: str = "") -> str:
    """Returns the instructions for the waiver's block; `mark` stands around the name of the
    file."""
    rest = len(offer.waivers) - _MAX_WAIVERS
    more = f" {plural(rest, 'more waiver')} would be needed." if rest > 0 else ""
    file = f"{mark}{WAIVERS_FILE}{mark}"
    if _are_all_filed(offer):
        has = f"{file} has a waiver of it, which allows less"
        return f"{has}. To accept it, change that entry to this one. {_where(offer)}{more}"
    known = "" if not offer.filed else f" in place of the {_entries(offer)} that it has,"
    put = f"put this into {file}{known} and replace what stands in {mark}<…>{mark}."
    if offer.is_unread:
        what = f"{file} has a mistake, so none of its entries counts."
        mend = "To accept it, mend that: an entry of the same model is to be changed to this one"
        return f"{what} {mend}, else {put} {_where(offer)}{more}"
    wider = " Its entry of the whole model may stay: this one counts in its place."
    return f"To accept it, {put}{wider if offer.has_wider else ''} {_where(offer)}{more}"


def _are_all_filed(offer: WaiverOffer) -> bool:
    return len(offer.filed) == len(offer.waivers)


def _entries(offer: WaiverOffer) -> str:
    return "entry" if len(offer.filed) == 1 else f"{len(offer.filed)} entries"


def waiver_yaml(offer: WaiverOffer) -> str:
    """The waivers. What `issue` and `reason` say is to be replaced: no file with it counts."""
    return "\n".join(["waivers:", *map(_entry, offer.waivers[:_MAX_WAIVERS])])


def _where(offer: WaiverOffer) -> str:
    if offer.counts_from == "head":
        return "The file of this branch counts."
    return (
        "Merge it first, in a change of its own: what counts is the file of the branch that this "
        "merges into. Then push to this one, or rebase it: a job that is only run again may have "
        "the commit from before."
    )


def _entry(waiver: Waiver) -> str:
    """No name in quotes can end the block."""
    return "\n".join(
        (
            f"  - model: {_quoted(waiver.model)}",
            f"    target: {_quoted(waiver.target)}",
            f"    ceiling-percent: {waiver.ceiling_percent:g}",
            f"    expires: {waiver.expires}",
            f"    issue: {_quoted(waiver.issue)}",
            f"    reason: {_quoted(waiver.reason)}",
        )
    )


def _quoted(name: str) -> str:
    """A string of YAML: one of JSON, but for pairs of surrogates, which YAML takes for two."""
    return "".join(
        each if each.isprintable() else f"\\U{ord(each):08x}"
        for each in json.dumps(name, ensure_ascii=False)
    )
