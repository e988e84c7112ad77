"""A report of a slowdown that is waived."""

from msgspec.structs import replace

from tests.support.reports import make_report, with_finding
from tunegate.artifacts.verdicts import Report


def waived() -> Report:
    """The slowdown of `slowed`, which its waiver lets pass."""
    why = "waived up to +17% until 2026-12-25: the wider kernel is worth it"
    remarks = (
        f"{why} (https://example.com/17); the waiver is in tunegate-waivers.yaml at the tip of the "
        "branch that this merges into: a change counts once it is merged there"
    )
    report = with_finding(make_report("slowed"), status="waived", remarks=remarks)
    verdict = replace(report.verdict, status="waived", exit_code=0)
    return replace(report, verdict=verdict, next_steps=(), waiver_offer=None)
