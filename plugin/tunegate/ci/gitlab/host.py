"""A job of GitLab CI."""

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from tunegate.ci import protocol
from tunegate.ci.comments import KeptComment, report_marker
from tunegate.ci.gitlab.event import gitlab_event
from tunegate.ci.host_files import log_annotations, report_inside, write_host_json, write_outputs
from tunegate.ci.http import RestApi
from tunegate.report.markdown import fit_text


class GitLabHost:
    """A job of GitLab CI, by the variables that the runner gives it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    @staticmethod
    def is_here(environment: Mapping[str, str]) -> bool:
        """Returns whether this is a GitLab job: each has this variable."""
        return environment.get("GITLAB_CI") == "true"

    def event(self, asked: protocol.AskedRevisions) -> protocol.JobEvent:
        """Returns the job's event. Raises ConfigError."""
        return gitlab_event(self._environment, asked)

    def links(self, out: Path) -> protocol.Links:
        """Returns the links; the report is among the job's artifacts if `out` is in the project's
        directory."""
        job = self._value("CI_JOB_URL")
        report = report_inside(out, self._value("CI_PROJECT_DIR"))
        project = self._value("CI_PROJECT_URL")
        return protocol.Links(
            run=job,
            report=f"{job}/artifacts/file/{report}" if job and report else "",
            commit=f"{project}/-/commit/" if project else "",
        )

    def literal_output(self) -> AbstractContextManager[None]:
        """Changes nothing: sections of a log need control characters, which are never printed."""
        return nullcontext()

    def tell(self, report: protocol.JobReport) -> None:
        """Reports annotations in the log; outputs for `artifacts:reports:dotenv`, and links for
        `artifacts:reports:annotations`, in files."""
        log_annotations(report.annotations)
        if report.directory is None:
            return
        write_outputs(report.directory, report.outputs)
        address = self.links(report.directory).report if report.outputs.get("report") else ""
        link = {"external_link": {"label": "tunegate report", "url": address}}
        write_host_json(report.directory, "links.json", {"tunegate": [link] if address else []})

    def comment(
        self, event: protocol.JobEvent, name: str, markdown: str, *, updates_only: bool = False
    ) -> None:
        """Writes a note on the merge request."""
        token = protocol.Secret(self._value("TUNEGATE_GITLAB_TOKEN").strip())
        project = self._value("CI_MERGE_REQUEST_PROJECT_ID")
        if event.pull_request is None:
            raise protocol.HostRefusedError("this pipeline is of no merge request")
        if not token:
            raise protocol.HostRefusedError("TUNEGATE_GITLAB_TOKEN is not set")
        if not project.isascii() or not project.isdigit():
            raise protocol.HostRefusedError("CI_MERGE_REQUEST_PROJECT_ID is not a number")
        api = self._value("CI_API_V4_URL")
        notes = Notes(api, int(project), event.pull_request, name, token)
        notes.publish(markdown, updates_only=updates_only)

    def _value(self, name: str) -> str:
        return self._environment.get(name, "")


_: type[protocol.CiHost] = GitLabHost


# The notes of one merge request, and which of them is ours.

MAX_NOTE_CHARACTERS = 900_000
_PAGE = 100
_MAX_PAGES = 30


class Notes:
    """Notes of one merge request, under the name of one report. `api` is CI_API_V4_URL."""

    def __init__(
        self, api: str, project: int, number: int, name: str, token: protocol.Secret
    ) -> None:
        """Raises HostRefusedError."""
        self._api = RestApi("GitLab", api, {"PRIVATE-TOKEN": token.reveal()})
        self._path = f"/projects/{project}/merge_requests/{number}/notes"
        self._first = report_marker(name)
        self._me: int | None = None

    def publish(self, markdown: str, *, updates_only: bool = False) -> None:
        """Replaces our note, or writes the first one. Raises HostRefusedError."""
        room = MAX_NOTE_CHARACTERS - len(self._first) - 1
        body = f"{self._first}\n{fit_text(note_text(markdown), room)}"
        KeptComment(self).publish(body, updates_only=updates_only)

    def find_own_comment(self) -> int | None:
        """Returns our note. Anybody who may comment could plant the marker: the note must be by
        this token's user."""
        if self._me is None:
            self._me = _id_of(self._api.ask("GET", "/user"))
        for page in range(1, _MAX_PAGES + 1):
            ordered = f"?sort=asc&order_by=created_at&per_page={_PAGE}&page={page}"
            batch = self._api.ask("GET", self._path + ordered)
            if not isinstance(batch, list):
                raise protocol.HostRefusedError("GitLab answered with no list of notes")
            note = next((each for each in batch if self._is_ours(each)), None)
            if note is not None:
                return _id_of(note)
            if len(batch) < _PAGE:
                return None
        return None

    def write(self, text: str) -> None:
        self._api.ask("POST", self._path, {"body": text})

    def rewrite(self, note: int, text: str) -> None:
        self._api.ask("PUT", f"{self._path}/{note}", {"body": text})

    def _is_ours(self, note: Any) -> bool:  # noqa: ANN401 -- JSON
        if not isinstance(note, dict) or not isinstance(note.get("author"), dict):
            return False
        is_mine = note["author"].get("id") == self._me
        return is_mine and str(note.get("body", "")).startswith(self._first)


def _id_of(answer: Any) -> int:  # noqa: ANN401 -- JSON
    number = answer.get("id") if isinstance(answer, dict) else None
    if type(number) is not int:
        raise protocol.HostRefusedError("GitLab answered without an id")
    return number


# A report as the text of a note, with GitLab's own syntax disabled. A line that begins with a slash
# is a command, `!7` and `&7` add a mention elsewhere, `%{x}` is replaced. The report's own escapes
# stop tags and links; the rest is stopped here.

_ZERO_WIDTH = "&#8203;"
_COMMAND = re.compile(r"^([^\S\n]*)/", re.MULTILINE)
_KEPT = r"`[^`\n]*`|<code>(?:(?!</?code>).)*</code>|\]\(https?://[^\s()]*\)|<[^<>]*>"
"""The parts of a text that stay as they are: code, addresses of links, tags. Each ends at the
latest where another begins, so the time is linear in the length."""
_ENTITY_MARK = r"&\#(?:33|35|36|37|38|64|91|94|126);"
_MARK = r"[!%^#@~$&]"
"""Characters that begin a reference, written plainly or as character references."""
_WORD = r"(?=[\w\"{]|&\#95;)"
_TRACKER = r"\b[A-Z][A-Z0-9_]+-(?=\d)"
_FOUND = re.compile(
    rf"(?P<stopped>{_ENTITY_MARK}{_WORD})|{_KEPT}|&\#?\w+;"
    rf"|(?P<mark>{_MARK}{_WORD}|{_TRACKER})",
)


def note_text(markdown: str) -> str:
    """Returns the same text for a reader, without commands, mentions and references."""
    return _COMMAND.sub(r"\1&#47;", _FOUND.sub(_stop_reference, markdown))


def _stop_reference(match: re.Match[str]) -> str:
    is_mark = match["stopped"] or match["mark"]
    return match.group() + _ZERO_WIDTH if is_mark else match.group()
