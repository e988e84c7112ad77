"""A check run beside the commit: in progress while a job judges, then its conclusion.

It needs `checks: write`. Without that, or where the API does not answer, there is none, and nobody
is told: it says what the job's own result says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from tunegate.ci.github.api import job_token, opened_api
from tunegate.ci.http import Patience
from tunegate.ci.protocol import (
    Annotation,
    HostRefusedError,
    JobProgress,
    JobReport,
    Level,
    Outcome,
)
from tunegate.report.fitted_markdown import fitted_text

MAX_SUMMARY_CHARACTERS = 65_000
MAX_CHECK_ANNOTATIONS = 50
_MAX_TITLE = 250
_MAX_MESSAGE = 16_000
_MAX_SECONDS = 15.0
_MAX_SECONDS_TO_BEGIN = 5.0
_MAX_SECONDS_AFTER_CANCEL = 4.0
"""A runner gives a job that is cancelled 7.5 s before it is ended, and 2.5 s more. While a check
begins, a cancel waits."""
_CONCLUSIONS: Mapping[Outcome, str] = {
    "passed": "success",
    "nothing to check": "neutral",
    "failed": "failure",
    "waits": "action_required",
    "cancelled": "cancelled",
}
_LEVELS: Mapping[Level, str] = {"error": "failure", "warning": "warning", "notice": "notice"}


class CheckRun:
    """The one of this job."""

    def __init__(
        self, environment: Mapping[str, str], address: str, patience: Patience | None = None
    ) -> None:
        """`address` is the page of the run."""
        self._environment = environment
        self._patience = patience or Patience()
        self._address = address
        self._number: int | None = None

    def show(self, report: JobReport, progress: JobProgress) -> None:
        """Begins it, or concludes the one that has begun."""
        with suppress(HostRefusedError):
            if progress.outcome is None:
                self._begin(progress)
            elif self._number is not None:
                self._conclude(report, progress, progress.outcome)

    def _begin(self, progress: JobProgress) -> None:
        begun = {"name": check_name(progress.name), "head_sha": progress.commit}
        details = {"details_url": self._address} if self._address else {}
        body = {**begun, **details, "status": "in_progress"}
        answer = self._asked("POST", "", body, _MAX_SECONDS_TO_BEGIN)
        number = answer.get("id") if isinstance(answer, dict) else None
        self._number = number if type(number) is int else None

    def _conclude(self, report: JobReport, progress: JobProgress, outcome: Outcome) -> None:
        summary = fitted_text(report.summary, MAX_SUMMARY_CHARACTERS) or progress.title
        output = {
            "title": progress.title[:_MAX_TITLE],
            "summary": summary,
            "annotations": _annotations(report.annotations),
        }
        body = {
            "status": "completed",
            "conclusion": _CONCLUSIONS[outcome],
            "output": output,
        }
        limit = _MAX_SECONDS_AFTER_CANCEL if outcome == "cancelled" else _MAX_SECONDS
        self._asked("PATCH", f"/{self._number}", body, limit)

    def _asked(self, method: str, path: str, body: object, limit_seconds: float) -> Any:  # noqa: ANN401 -- JSON
        token = job_token(self._environment)
        if not token:
            return None
        api = opened_api(
            self._environment, token, limit_seconds=limit_seconds, patience=self._patience
        )
        repository = self._environment.get("GITHUB_REPOSITORY", "")
        return api.ask(method, f"/repos/{repository}/check-runs{path}", body)


def check_name(report: str) -> str:
    """Returns a name that no job has: a rule that requires the job must not be met by the check."""
    return f"tunegate verdict ({report})" if report else "tunegate verdict"


def _annotations(annotations: Sequence[Annotation]) -> list[dict[str, object]]:
    """Those that name a file: the API takes no others."""
    return [
        {
            "path": each.file,
            "start_line": each.line,
            "end_line": each.line,
            "annotation_level": _LEVELS[each.level],
            "title": each.title[:_MAX_TITLE],
            "message": each.text[:_MAX_MESSAGE] or each.title,
        }
        for each in annotations
        if each.file and each.line
    ][:MAX_CHECK_ANNOTATIONS]
