"""The API that a job may call, and whose its token is: the job's own, a person's or an app's."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tunegate.ci import protocol
from tunegate.ci.comments import KeptComment, report_marker
from tunegate.ci.http import Patience, RestApi, RestRefusedError
from tunegate.report.markdown import fit_text

_PUBLIC = "https://api.github.com"
_LOGIN = re.compile(r"[\w.-]{1,100}(\[bot\])?", re.ASCII)
_WHO = {"query": "query { viewer { login } }"}


def job_token(environment: Mapping[str, str]) -> protocol.Secret:
    return protocol.Secret(environment.get("TUNEGATE_GITHUB_TOKEN", "").strip())


def open_api(
    environment: Mapping[str, str],
    token: protocol.Secret,
    *,
    limit_seconds: float = 60.0,
    patience: Patience | None = None,
) -> RestApi:
    """Opens the API of the job's server, which may be a company's own. Raises HostRefusedError."""
    address = environment.get("GITHUB_API_URL") or _PUBLIC
    headers = _headers(token)
    return RestApi("GitHub", address, headers, limit_seconds=limit_seconds, patience=patience)


def login_of(
    environment: Mapping[str, str],
    token: protocol.Secret,
    api: RestApi,
    patience: Patience | None = None,
) -> str:
    """Returns the login that comments with this token, '' if unknown.

    An installation token may not ask for its user, but the other API names its app. Gitea has no
    other API, and refuses a job's token the user. Raises HostRefusedError if the server does not
    answer at all.
    """
    return _viewer(environment, token, patience) or _user(api)


def _viewer(
    environment: Mapping[str, str], token: protocol.Secret, patience: Patience | None
) -> str:
    address = environment.get("GITHUB_GRAPHQL_URL", "")
    try:
        api = RestApi("GitHub", address, _headers(token), limit_seconds=5, patience=patience)
        answer = api.ask("POST", "", _WHO, is_repeatable=True)
    except protocol.HostRefusedError:
        return ""
    return _login(_inside(_inside(answer, "data"), "viewer"))


def _user(api: RestApi) -> str:
    try:
        return _login(api.ask("GET", "/user"))
    except RestRefusedError as error:
        if error.status in {401, 403, 404}:
            return ""
        raise


def _login(user: object) -> str:
    login = _inside(user, "login")
    return login if isinstance(login, str) and _LOGIN.fullmatch(login) else ""


def _inside(answer: object, name: str) -> Any:  # noqa: ANN401 -- JSON
    return answer.get(name) if isinstance(answer, dict) else None


def _headers(token: protocol.Secret) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {token.reveal()}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }


# The comments of one pull request, and whose they are.

MAX_COMMENT_CHARACTERS = 65_000
"""GitHub's limit is 65,536."""
JOBS_OWN = "github-actions[bot]"
"""The login that a job's token writes as. No user can have it: names have no brackets."""
_OF_OTHER_HOSTS = frozenset({"gitea-actions", "forgejo-actions"})
"""The same for Gitea and Forgejo. A user may have this name, but only the host's own has an id
below zero."""
_PAGE = 100
_MAX_PAGES = 30


class Comments:
    """Comments of one pull request. `api` is the repository's, `author` the login that its token
    writes as, '' if unknown: then comments by the host's own user for jobs are ours, and others
    only by the author whom the server names when we write."""

    def __init__(self, api: RestApi, repository: str, number: int, name: str, author: str) -> None:
        self._api = api
        self._repository = f"/repos/{repository}"
        self._comments = f"{self._repository}/issues/{number}/comments"
        self._first = report_marker(name)
        self._author = author
        self._author_id: object = None

    def publish(self, text: str, *, updates_only: bool = False) -> None:
        """Replaces our comment, or writes the first one. Raises HostRefusedError."""
        room = MAX_COMMENT_CHARACTERS - len(self._first)
        body = f"{self._first}\n{fit_text(text, room)}"
        if not self._author and self._find_marked(_is_anybody) and self.find_own_comment() is None:
            self._publish_as_whoever_we_are(body, updates_only=updates_only)
        else:
            KeptComment(self).publish(body, updates_only=updates_only)

    def _publish_as_whoever_we_are(self, body: str, *, updates_only: bool) -> None:
        """Handles a marker of unknown authorship: a new comment reveals who we are, and is deleted
        again if an earlier one turns out to be ours."""
        comment = self._api.ask("POST", self._comments, {"body": body})
        new, writer = _inside(comment, "id"), _inside(comment, "user")
        self._author, self._author_id = _login(writer), _inside(writer, "id")
        earlier = self.find_own_comment() if self._author else new
        if type(new) is not int or (earlier in {None, new} and not updates_only):
            return
        if earlier is not None and earlier != new:
            self.rewrite(earlier, body)
        self._api.ask("DELETE", f"{self._repository}/issues/comments/{new}")

    def find_own_comment(self) -> int | None:
        """Returns our comment. Anybody who may comment could plant the marker: the author must be
        us."""
        return self._find_marked(self._is_us)

    def _find_marked(self, is_wanted: Callable[[object], bool]) -> int | None:
        """Returns the first comment with the marker by such a user."""
        for page in range(1, _MAX_PAGES + 1):
            batch = self._api.ask("GET", f"{self._comments}?per_page={_PAGE}&page={page}")
            if not isinstance(batch, list) or not all(isinstance(each, dict) for each in batch):
                raise protocol.HostRefusedError("GitHub answered with no list of comments")
            marked = (each for each in batch if self._has_marker(each))
            found = next((each for each in marked if is_wanted(each.get("user"))), None)
            if found is not None:
                return _id_of(found)
            if len(batch) < _PAGE:
                break
        return None

    def write(self, text: str) -> None:
        self._api.ask("POST", self._comments, {"body": text})

    def rewrite(self, comment: int, text: str) -> None:
        self._api.ask("PATCH", f"{self._repository}/issues/comments/{comment}", {"body": text})

    def _has_marker(self, comment: dict[str, Any]) -> bool:
        return str(comment.get("body", "")).startswith(self._first)

    def _is_us(self, user: object) -> bool:
        login = _inside(user, "login")
        if self._author:
            is_same = self._author_id is None or self._author_id == _inside(user, "id")
            return bool(login == self._author and is_same)
        number = _inside(user, "id")
        is_of_host = login in _OF_OTHER_HOSTS and type(number) is int and number < 0
        return bool(login == JOBS_OWN or is_of_host)


def _is_anybody(_: object) -> bool:
    return True


def _id_of(comment: dict[str, Any]) -> int:
    number = comment.get("id")
    if type(number) is not int:
        raise protocol.HostRefusedError("GitHub answered with a comment without an id")
    return number


# A check run beside the commit: in progress while a job judges, then its conclusion. It needs
# `checks: write`. Without that, or if the API does not answer, there is no check and no message:
# it only repeats the job's own result.

MAX_SUMMARY_CHARACTERS = 65_000
MAX_CHECK_ANNOTATIONS = 50
_MAX_TITLE = 250
_MAX_MESSAGE = 16_000
_MAX_SECONDS = 15.0
_MAX_SECONDS_TO_BEGIN = 5.0
_MAX_SECONDS_AFTER_CANCEL = 4.0
"""A runner gives a cancelled job 7.5 s before it is ended, and 2.5 s more. While a check is being
created, a cancel waits."""
_CONCLUSIONS: Mapping[protocol.Outcome, str] = {
    "passed": "success",
    "nothing to check": "neutral",
    "failed": "failure",
    "waits": "action_required",
    "cancelled": "cancelled",
}
_LEVELS: Mapping[protocol.Level, str] = {
    "error": "failure",
    "warning": "warning",
    "notice": "notice",
}


class CheckRun:
    """This job's check run."""

    def __init__(
        self, environment: Mapping[str, str], address: str, patience: Patience | None = None
    ) -> None:
        """`address` is the page of the run."""
        self._environment = environment
        self._patience = patience or Patience()
        self._address = address
        self._number: int | None = None

    def show(self, report: protocol.JobReport, progress: protocol.JobProgress) -> None:
        """Creates the check, or concludes the existing one."""
        with suppress(protocol.HostRefusedError):
            if progress.outcome is None:
                self._begin(progress)
            elif self._number is not None:
                self._conclude(report, progress, progress.outcome)

    def _begin(self, progress: protocol.JobProgress) -> None:
        check_run = {"name": check_name(progress.name), "head_sha": progress.commit}
        details = {"details_url": self._address} if self._address else {}
        body = {**check_run, **details, "status": "in_progress"}
        answer = self._call("POST", "", body, _MAX_SECONDS_TO_BEGIN)
        number = answer.get("id") if isinstance(answer, dict) else None
        self._number = number if type(number) is int else None

    def _conclude(
        self, report: protocol.JobReport, progress: protocol.JobProgress, outcome: protocol.Outcome
    ) -> None:
        summary = fit_text(report.summary, MAX_SUMMARY_CHARACTERS) or progress.title
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
        self._call("PATCH", f"/{self._number}", body, limit)

    def _call(self, method: str, path: str, body: object, limit_seconds: float) -> Any:  # noqa: ANN401 -- JSON
        token = job_token(self._environment)
        if not token:
            return None
        api = open_api(
            self._environment, token, limit_seconds=limit_seconds, patience=self._patience
        )
        repository = self._environment.get("GITHUB_REPOSITORY", "")
        return api.ask(method, f"/repos/{repository}/check-runs{path}", body)


def check_name(report: str) -> str:
    """Returns a name that no job has: the check must not satisfy a rule that requires the job."""
    return f"tunegate verdict ({report})" if report else "tunegate verdict"


def _annotations(annotations: Sequence[protocol.Annotation]) -> list[dict[str, object]]:
    """Returns the annotations that name a file: the API takes no others."""
    return [
        {
            "path": annotation.file,
            "start_line": annotation.line,
            "end_line": annotation.line,
            "annotation_level": _LEVELS[annotation.level],
            "title": annotation.title[:_MAX_TITLE],
            "message": annotation.text[:_MAX_MESSAGE] or annotation.title,
        }
        for annotation in annotations
        if annotation.file and annotation.line
    ][:MAX_CHECK_ANNOTATIONS]
