"""The verdict as a Code Insights report of a commit, which a pull request shows beside its
changes."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from tunegate.ci.http import RestApi
from tunegate.ci.protocol import JobReport, Secret
from tunegate_ci_hosts.bitbucket.comments import API

_RESULTS = {"pass": "PASSED", "fail": "FAILED", "error": "FAILED"}
_MAX_DETAILS = 2000
_ID = "tunegate"


def publish_insight(report: JobReport, commit_path: str, link: str, token: Secret) -> None:
    """Replaces the report of an earlier run. `commit_path` names the commit in the API. Raises
    HostRefusedError."""
    api = RestApi("Bitbucket", API, {"Authorization": f"Bearer {token.reveal()}"})
    api.ask("PUT", f"{commit_path}/reports/{_ID}", insight_of(report, link))


def insight_of(report: JobReport, link: str) -> Mapping[str, object]:
    """Returns the report as the API takes it: plain text, no Markdown."""
    verdict = report.outputs.get("verdict", "")
    texts = [each.text for each in report.annotations] or [f"verdict: {verdict}"]
    details = "; ".join(texts)
    result = {"result": _RESULTS[verdict]} if verdict in _RESULTS else {}
    is_address = urlsplit(link).scheme == "https"
    return {
        "title": "tunegate: model latency",
        "details": "".join(c if c.isprintable() else " " for c in details)[:_MAX_DETAILS],
        "report_type": "TEST",
        "reporter": "tunegate",
        **result,
        **({"link": link} if is_address else {}),
    }
