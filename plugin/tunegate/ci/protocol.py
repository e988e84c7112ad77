"""The protocol of a CI host, and what passes between it and a job: the event, the results, a
token."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from tunegate.settings import CommentWhen

# The ways in which an event can say which two revisions a job compares. Git finds them.


class _Choice(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One of several choices."""


class MergeCommit(_Choice, frozen=True, kw_only=True):
    """A pull request with these tips: its merge commit against the first parent, or its head
    against the merge base, whichever is checked out."""

    base_tip: str
    head_tip: str


class MergeBase(_Choice, frozen=True, kw_only=True):
    """The checkout against the point where it left the target, a commit or a remote branch. The
    target's rules judge."""

    target: str


class Push(_Choice, frozen=True, kw_only=True):
    """The commit after a push against the one before. `before` is zeros for a new branch, which is
    compared with its merge base with the default branch ('': git finds it). `is_default` means that
    the default branch was pushed, whose first push has nothing before it."""

    before: str
    after: str
    default_branch: str = ""
    is_default: bool = False


class Range(_Choice, frozen=True, kw_only=True):
    """Two commits that the event names."""

    base: str
    head: str


class Usual(_Choice, frozen=True, kw_only=True):
    """The checkout against its merge base with the default branch, or on that branch against its
    parent. '' is the default branch that git finds; a named one is fetched. `is_here_enough`: if
    that fails, the checkout's own branch will do. `is_on_it`: the head is on the default branch, so
    nothing is fetched."""

    default_branch: str = ""
    is_here_enough: bool = False
    is_on_it: bool = False


RevisionChoice = MergeCommit | MergeBase | Push | Range | Usual


# The protocol of a CI host: it reads the job's event and shows the result. A CI is added as a
# folder beside this file, or as a package of its own: docs/how-to/extend.md.

Level = Literal["error", "warning", "notice"]


class AskedRevisions(msgspec.Struct, frozen=True, kw_only=True):
    """The revisions that the job itself names, as options or inputs; '' leaves one to the event."""

    base: str = ""
    head: str = ""
    since_release: bool = False
    no_base: bool = False


class JobEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison that a job is about. `revisions` says how base and head are found.
    `checked_out` is the commit that must be checked out, '' if finding them checks that.

    If it is '' and `revisions` is a MergeBase, `tip` or a merge of it with its target must be
    checked out.

    `zone` is the cache zone that the job may write: None for none, '' for the configured one.
    `pull_request` is the number to comment on, `tip` its commit, and `target` the branch it would
    be merged into, if the event names it. `job` is the CI's name of the reporting job and its
    workflow, `matrix` its matrix values: several jobs may report on one pull request.
    """

    revisions: RevisionChoice
    checked_out: str = ""
    zone: str | None = None
    pull_request: int | None = None
    tip: str = ""
    target: str = ""
    job: str = ""
    matrix: str = ""


class Links(msgspec.Struct, frozen=True, kw_only=True):
    """The pages of this job and of its files; a commit's id behind `commit` gives the page of that
    commit. Unknown ones are ''."""

    run: str = ""
    report: str = ""
    commit: str = ""


class Annotation(msgspec.Struct, frozen=True, kw_only=True):
    """One line to show beside the job, at a line of a file if it names one. The texts are
    untrusted."""

    level: Level
    title: str
    text: str
    file: str = ""
    line: int = 0


Outcome = Literal["passed", "nothing to check", "failed", "waits", "cancelled"]
"""The outcome of a judging job. One that `waits` needs somebody: to run it again, to fetch a base,
or to agree to changed rules. It is not green."""


class JobProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a judging job; `outcome` None means that it begins. `name` distinguishes its
    report from others on this `commit`; `title` is one line in our own words."""

    name: str
    commit: str
    outcome: Outcome | None = None
    title: str = ""


class JobReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a job besides its exit code: outputs for later jobs, annotations with the most
    important first, and a page in Markdown. `directory` is where files may be written, if anywhere.
    A report with only `progress` says that a job begins."""

    outputs: Mapping[str, str] = {}
    annotations: Sequence[Annotation] = ()
    summary: str = ""
    directory: Path | None = None
    progress: JobProgress | None = None


class AgentCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command of the CI's own agent, which gets `text` on standard input. It is looked up in
    `directory` and on the PATH, never in a relative directory. `variables` names the job variables
    that it needs; they may hold secrets."""

    program: str
    arguments: tuple[str, ...]
    text: str
    directory: str = ""
    variables: tuple[str, ...] = ()


class CiHost(Protocol):
    """One CI, seen from a job of it.

    Event. `event` reads the environment, and files that it names, without calling or starting
    anything. It raises ConfigError for an event that names no two commits, or that has more rights
    than the code it checks out.

    Report. `tell` shows a report in the ways the CI has, and leaves out the rest. All texts in it
    come from the repository: none may be an instruction to the CI. It starts no process; if the
    CI's agent must be called, it returns that command.

    Comment. `comment` writes a text on the event's pull request, or replaces what an earlier job
    wrote under this name; with `updates_only` it only replaces. It raises HostRefusedError, whose
    text shows no secret.
    """

    def __init__(self, environment: Mapping[str, str]) -> None: ...

    @staticmethod
    def is_here(environment: Mapping[str, str]) -> bool:
        """Returns whether a process with this environment is a job of this CI."""
        ...

    def event(self, asked: AskedRevisions) -> JobEvent: ...

    def links(self, out: Path) -> Links:
        """Returns the addresses of this job, which keeps `out` among its files."""
        ...

    def literal_output(self) -> AbstractContextManager[None]:
        """Keeps the CI from taking anything printed inside for an instruction."""
        ...

    def tell(self, report: JobReport) -> AgentCommand | None: ...

    def comment(
        self, event: JobEvent, name: str, markdown: str, *, updates_only: bool = False
    ) -> None: ...


class HostRefusedError(Exception):
    """A CI did not do what was asked. The text says why, without any secret. It changes no
    verdict."""


# A token that can be passed on without being shown.


class Secret:
    """A text that never shows itself."""

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return "***" if self._text else "''"


# A finished run of a pull request from a fork, reported by a run with more rights. The run is the
# fork's own, so its files are hostile; everything here comes from the CI alone.


class FinishedRun(msgspec.Struct, frozen=True, kw_only=True):
    """`pull_request` has `tip` as its head now, `source` is the fork as `owner/name`, and `links`
    are the pages of the run."""

    pull_request: int
    tip: str
    source: str
    links: Links = Links()


class FinishedRunHost(CiHost, Protocol):
    """A CI that starts a job when another run has ended."""

    def finished_run(self) -> FinishedRun:
        """Returns the run. Raises ConfigError for an event about no such run, NothingToReportError
        if nobody waits for a report, and HostRefusedError if the CI cannot be asked."""
        ...


class NothingToReportError(HostRefusedError):
    """The run is not a fork's, or its pull request is closed or has moved on."""


# The request of a CI job.

StepName = Literal["run", "plan", "tune", "gate", "measure", "verdict"]
PLANNING: frozenset[StepName] = frozenset({"run", "plan"})
JUDGING: frozenset[StepName] = frozenset({"run", "gate", "verdict"})


class JobRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`words` is the command line without what the event decides, which follows it. The other
    fields are its parsed values."""

    words: tuple[str, ...]
    step: StepName
    out: Path
    repository: Path = Path()
    config: Path = Path("tunegate.yaml")
    asked: AskedRevisions = AskedRevisions()
    policy: str = ""
    zone: str = ""
    is_without_cache: bool = False
    comment: CommentWhen = "never"
