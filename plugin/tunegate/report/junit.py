"""The verdict as JUnit XML: one test case for every model on every target."""

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from tunegate.artifacts.changes import PolicyChange
from tunegate.artifacts.verdicts import Finding, Report, Status
from tunegate.report.escape import visible
from tunegate.report.headline import POLICY_CHANGE, STATUS_WORDS, described_change, reason
from tunegate.report.units import interval, percent
from tunegate.wording import milliseconds

OUTCOMES: dict[Status, tuple[str, str] | None] = {
    "pass": None,
    "fail": ("failure", "regression"),
    "inconclusive": ("failure", "inconclusive"),
    "error": ("error", "error"),
    "invalid-env": ("error", "invalid-env"),
    "no-baseline": ("error", "no-baseline"),
    "new": ("skipped", "new"),
    "waived": ("skipped", "waived"),
}


def render(report: Report) -> str:
    """Returns a document of one suite. New and waived models are skipped, undecided ones are
    failures.

    Changes of the gate's own rules come first: failures if they are forbidden, else skipped.
    """
    seconds = _seconds(report)
    cases = [_policy_case(change, report) for change in report.verdict.policy_changes]
    for finding in report.verdict.findings:
        case = _case(finding, seconds.get((finding.model, finding.target), 0.0))
        _explain(case, finding, report)
        cases.append(case)
    counted = {
        "tests": str(len(cases)),
        "failures": str(_count(cases, "failure")),
        "errors": str(_count(cases, "error")),
        "time": f"{sum(seconds.values()):.3f}",
    }
    suites = ET.Element("testsuites", {"name": "tunegate", **counted})
    # readers' schemas have skipped counts for a suite only
    skipped = {"skipped": str(_count(cases, "skipped"))}
    suite = ET.SubElement(suites, "testsuite", {"name": "tunegate", **counted, **skipped})
    suite.extend(cases)
    ET.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suites, "unicode") + "\n"


def _policy_case(change: PolicyChange, report: Report) -> ET.Element:
    places = " ".join(part for part in (change.key, change.model, change.target) if part)
    case = ET.Element(
        "testcase",
        {"classname": f"tunegate.{POLICY_CHANGE}", "name": visible(places), "time": "0.000"},
    )
    message = visible(described_change(change), 600)
    if change.weakens and report.verdict.policy_fails:
        ET.SubElement(case, "failure", {"message": message, "type": POLICY_CHANGE})
    elif change.weakens:
        ET.SubElement(case, "skipped", {"message": message})
    ET.SubElement(case, "system-out").text = message
    return case


def _case(finding: Finding, seconds: float) -> ET.Element:
    return ET.Element(
        "testcase",
        {
            "classname": visible(f"tunegate.{finding.target}"),
            "name": visible(finding.model),
            "time": f"{seconds:.3f}",
        },
    )


def _explain(case: ET.Element, finding: Finding, report: Report) -> None:
    outcome = OUTCOMES[finding.status]
    message = visible(f"{STATUS_WORDS[finding.status]}: {reason(finding, report.verdict)}", 600)
    if outcome is not None:
        tag, kind = outcome
        attributes = (
            {"message": message} if tag == "skipped" else {"message": message, "type": kind}
        )
        ET.SubElement(case, tag, attributes)
    ET.SubElement(case, "system-out").text = _figures(finding, message)


def _figures(finding: Finding, message: str) -> str:
    base_ms, head_ms = milliseconds(finding.base_ms), milliseconds(finding.head_ms)
    return (
        f"{message}\n"
        f"base {base_ms}, head {head_ms}, ONNX Runtime {milliseconds(finding.reference_ms)}\n"
        f"change {_change(finding)} in {finding.launches} launches"
        f"{''.join(_candidates(finding))}"
    )


def _candidates(finding: Finding) -> Iterator[str]:
    for runtime in finding.runtimes:
        if runtime.reason:
            yield f"\n{visible(f'{runtime.title}: {runtime.reason}', 600)}"


def _change(finding: Finding) -> str:
    change = finding.change_percent
    return f"{percent(change.center)} ({interval(change)})" if change else percent(None)


def _count(cases: list[ET.Element], tag: str) -> int:
    return sum(case.find(tag) is not None for case in cases)


def _seconds(report: Report) -> dict[tuple[str, str], float]:
    cells = report.run.cells if report.run else ()
    return {(cell.cell.model, cell.cell.target): cell.seconds for cell in cells}
