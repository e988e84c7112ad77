"""The end of a run says what was skipped, why, and which command installs what was missing."""

from collections import Counter
from collections.abc import Generator, Iterable

import pytest

from tests.support.programs import MissingProgramsError

_PACKAGE = "missing package"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Writes down the packages that a skipped test lacks, for whichever process sums up."""
    report = yield
    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, MissingProgramsError):
        report.user_properties += [(_PACKAGE, package) for package in error.packages]
        report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: {error}")
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        terminalreporter.section("skipped on this machine")
        for line in summary(skipped):
            terminalreporter.line(line)


def summary(skipped: Iterable[pytest.TestReport | pytest.CollectReport]) -> list[str]:
    """Returns a line for each reason, and the one command for all that can be installed."""
    reports = list(skipped)
    reasons = Counter(reason_of(report) for report in reports)
    lines = [f"{count:>4} x {reason}" for reason, count in reasons.most_common()]
    packages = sorted({package for report in reports for package in packages_of(report)})
    if packages:
        lines.append("To run these tests too, install what is missing (Debian, Ubuntu):")
        lines.append(f"  make programs    # apt-get install {' '.join(packages)}")
    return lines


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(report.longrepr)


def packages_of(report: pytest.TestReport | pytest.CollectReport) -> list[str]:
    properties = report.user_properties if isinstance(report, pytest.TestReport) else []
    return [str(package) for name, package in properties if name == _PACKAGE]
