"""A job of GitHub Actions."""

import json
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TextIO

from tunegate.ci import protocol
from tunegate.ci.github.api import CheckRun, Comments, job_token, login_of, open_api
from tunegate.ci.github.event import finished_run, github_event
from tunegate.ci.http import Patience
from tunegate.errors import ConfigError, OutputError
from tunegate.regular_files import read_regular, where_it_leads


class GitHubHost:
    """A job of GitHub Actions, by the variables and files that the runner gives it. Commands go to
    standard output."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._patience = Patience()
        self._check = CheckRun(environment, self.links(Path()).run, self._patience)

    @staticmethod
    def is_here(environment: Mapping[str, str]) -> bool:
        """Returns whether this is a GitHub job: each has this variable."""
        return environment.get("GITHUB_ACTIONS") == "true"

    def event(self, asked: protocol.AskedRevisions) -> protocol.JobEvent:
        """Returns the job's event. Raises ConfigError."""
        return github_event(self._environment, self._payload(), asked)

    def links(self, out: Path) -> protocol.Links:
        """Returns the links. A later step uploads the files: their address is not known yet, but
        the run's page lists them. A job that stores them elsewhere says so."""
        server, repository = self._value("GITHUB_SERVER_URL"), self._value("GITHUB_REPOSITORY")
        number = self._value("GITHUB_RUN_ID")
        if not (server and repository and number):
            return protocol.Links(report=self._value("TUNEGATE_REPORT_URL"))
        run = f"{server}/{repository}/actions/runs/{number}"
        report = self._value("TUNEGATE_REPORT_URL") or f"{run}#artifacts"
        return protocol.Links(run=run, report=report, commit=f"{server}/{repository}/commit/")

    def literal_output(self) -> AbstractContextManager[None]:
        """Keeps printed names of a pull request from being taken for commands."""
        return commands_stopped(sys.stdout)

    def tell(self, report: protocol.JobReport) -> None:
        """Reports by workflow commands, the runner's files for outputs and for the step's summary,
        and a check run. Raises OutputError for a file that cannot be written, after the rest."""
        for annotation in report.annotations[:MAX_ANNOTATIONS]:
            sys.stdout.write(f"{command_of(annotation)}\n")
        sys.stdout.flush()
        outputs = "".join(output(name, value) for name, value in report.outputs.items())
        texts = {"GITHUB_OUTPUT": outputs, "GITHUB_STEP_SUMMARY": truncate_utf8(report.summary)}
        problems = [self._append(name, text) for name, text in texts.items() if text]
        if report.progress is not None:
            self._check.show(report, report.progress)
        if any(problems):
            raise OutputError(". ".join(filter(None, problems)))

    def comment(
        self, event: protocol.JobEvent, name: str, markdown: str, *, updates_only: bool = False
    ) -> None:
        """Writes the comment. Without a token the API is not called: the report is in the step's
        summary."""
        token = job_token(self._environment)
        if not token or event.pull_request is None:
            return
        api = open_api(self._environment, token, patience=self._patience)
        author = login_of(self._environment, token, api, self._patience)
        api = open_api(self._environment, token, patience=self._patience)
        repository = self._value("GITHUB_REPOSITORY")
        comments = Comments(api, repository, event.pull_request, name, author)
        comments.publish(markdown, updates_only=updates_only)

    def finished_run(self) -> protocol.FinishedRun:
        """Returns the finished run of a fork, by the event `workflow_run`."""
        token = job_token(self._environment)
        api = open_api(self._environment, token) if token else None
        return finished_run(self._environment, self._payload(), api)

    def _payload(self) -> Mapping[str, Any]:
        """Returns the event's document. Raises ConfigError."""
        path = self._value("GITHUB_EVENT_PATH")
        try:
            payload = json.loads(_text_of(path)) if path else {}
        except (OSError, ValueError, RecursionError) as error:
            message = f"GITHUB_EVENT_PATH: {path} cannot be read ({error})."
            raise ConfigError(message) from error
        if not isinstance(payload, dict):
            message = f"GITHUB_EVENT_PATH: {path} holds no event."
            raise ConfigError(message)
        return payload

    def _append(self, name: str, text: str) -> str:
        """Appends to one of GitHub's files, if there is one. Returns why it could not."""
        path = self._value(name)
        try:
            append(path, text)
        except OSError as error:
            reason = error.strerror or error
            return f"{name}: {path} cannot be written ({reason}): make room or correct the path"
        return ""

    def _value(self, name: str) -> str:
        return self._environment.get(name, "")


def _text_of(path: str) -> str:
    """Returns the text of a plain file, also behind a link, and waits for no pipe."""
    return read_regular(where_it_leads(Path(path))).decode()


_: type[protocol.CiHost] = GitHubHost
_finishing: type[protocol.FinishedRunHost] = GitHubHost


# GitHub's workflow commands and files: outputs, summary, annotations. All text is untrusted.

SUMMARY_BYTES = 900 * 1024
MAX_ANNOTATIONS = 10
_MESSAGE_CHARACTERS = 4000


def command_of(annotation: protocol.Annotation) -> str:
    """Returns the workflow command of an annotation, shown beside the run, and at the file's line
    if it names one."""
    file, line = _property(annotation.file), annotation.line
    where = f"file={file},line={line}," if file and line else ""
    text = _data(annotation.text[:_MESSAGE_CHARACTERS])
    return f"::{annotation.level} {where}title={_property(annotation.title)}::{text}"


def output(name: str, value: str) -> str:
    """Returns an entry for GITHUB_OUTPUT, with a delimiter that the value cannot contain."""
    delimiter = f"ghadelimiter_{uuid.uuid4()}"
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def truncate_utf8(text: str, most_bytes: int = SUMMARY_BYTES) -> str:
    """Returns the text within GitHub's limit, cut between characters."""
    body = text.encode()
    if len(body) <= most_bytes:
        return text
    note = "\n\n(cut: the whole report is in the artifact)\n"
    body_start = body[: most_bytes - len(note.encode())]
    return body_start.decode(errors="ignore") + note


def append(path: str, text: str) -> None:
    """Appends to one of GitHub's files; does nothing outside of a runner."""
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)


@contextmanager
def commands_stopped(stream: TextIO) -> Iterator[None]:
    """Stops the runner's commands inside, so that no printed line of a pull request is a workflow
    command."""
    token = uuid.uuid4().hex
    stream.write(f"::stop-commands::{token}\n")
    stream.flush()
    try:
        yield
    finally:
        stream.write(f"::{token}::\n")
        stream.flush()


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
