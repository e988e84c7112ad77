"""Instructions for accepting a slowdown: the text to paste, and where."""

from tunegate.artifacts.verdicts import WAIVERS_FILE, Waiver, WaiverOffer
from tunegate.report.escape import yaml_text
from tunegate.wording import plural

_NEW_TITLE, _FILED_TITLE = "Accept it with a waiver", "Accept it by changing its waiver"
_MAX_WAIVERS = 10


def accept_title(offer: WaiverOffer) -> str:
    """Returns the title of the fold with the waivers."""
    return _FILED_TITLE if _are_all_filed(offer) else _NEW_TITLE


def waiver_text(offer: WaiverOffer) -> str:
    """Returns Markdown with a block of YAML to paste."""
    return f"{waiver_advice(offer, '`')}\n\n```yaml\n{waiver_yaml(offer)}\n```"


def waiver_advice(offer: WaiverOffer, mark: str = "") -> str:
    """Returns the instructions for the waiver's block; `mark` surrounds the name of the file."""
    rest = len(offer.waivers) - _MAX_WAIVERS
    more = f" {plural(rest, 'more waiver')} would be needed." if rest > 0 else ""
    file = f"{mark}{WAIVERS_FILE}{mark}"
    if _are_all_filed(offer):
        has = f"{file} has a waiver for it that allows less"
        return f"{has}. To accept it, change that entry to this one. {_where(offer)}{more}"
    instead = "" if not offer.filed else f" instead of the {_entries(offer)} that it has,"
    step = f"add this to {file}{instead} and replace the text in {mark}<…>{mark}."
    if offer.is_unread:
        what = f"{file} has a mistake, so none of its entries counts."
        mend = "To accept it, repair that. If the same model has an entry, change it to this one"
        return f"{what} {mend}, otherwise {step} {_where(offer)}{more}"
    wider = " Its entry for the whole model may stay: this one counts instead."
    return f"To accept it, {step}{wider if offer.has_wider else ''} {_where(offer)}{more}"


def _are_all_filed(offer: WaiverOffer) -> bool:
    return len(offer.filed) == len(offer.waivers)


def _entries(offer: WaiverOffer) -> str:
    return "entry" if len(offer.filed) == 1 else f"{len(offer.filed)} entries"


def waiver_yaml(offer: WaiverOffer) -> str:
    """Returns the waivers as YAML. `issue` and `reason` must be replaced: no file with the
    placeholders counts."""
    return "\n".join(["waivers:", *map(_entry, offer.waivers[:_MAX_WAIVERS])])


def _where(offer: WaiverOffer) -> str:
    if offer.counts_from == "head":
        return "The file of this branch counts."
    return (
        "Merge that first, in a pull request of its own, because the file of the target branch "
        "counts. Then push to this branch, or rebase it: a re-run job may have the old commit."
    )


def _entry(waiver: Waiver) -> str:
    """Returns one waiver's entry; a quoted name cannot end the block."""
    return "\n".join(
        (
            f"  - model: {yaml_text(waiver.model)}",
            f"    target: {yaml_text(waiver.target)}",
            f"    ceiling-percent: {waiver.ceiling_percent:g}",
            f"    expires: {waiver.expires}",
            f"    issue: {yaml_text(waiver.issue)}",
            f"    reason: {yaml_text(waiver.reason)}",
        )
    )
