"""Runs a command as a CI job: its event decides what is compared and what may be written, and the
CI gets the result. A refusal by the CI never changes a verdict."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, assert_never

import msgspec

from tunegate.artifacts.changes import Revisions
from tunegate.artifacts.verdicts import Verdict
from tunegate.ci import job_results, protocol
from tunegate.ci.comments import NO_CHANGE, with_links
from tunegate.errors import BUG, CANCELLED, FAIL, PASS, ConfigKey, TunegateError
from tunegate.redaction import redact, secrets_of
from tunegate.regular_files import where_it_leads
from tunegate.settings import CommentWhen
from tunegate.system.git.fetch import is_commit_id
from tunegate.system.git.repository import GitRepository
from tunegate.system.output.directory import forget_verdict
from tunegate.system.processes.signals import cancellable, postpone

Ended = tuple[int, str, ConfigKey | None, tuple[str, ...]]
"""An exit code, the problem in one line if it was not printed yet, the configuration key behind it,
and further lines."""


def run_job(
    host: protocol.CiHost,
    environment: Mapping[str, str],
    request: protocol.JobRequest,
    execute: Callable[[Sequence[str]], Ended],
) -> int:
    """Runs the command line with `execute`, and returns its exit code. Also a run that a signal
    ends is reported to the CI."""
    try:
        event = host.event(request.asked)
        revisions = job_revisions(request, event)
    except TunegateError as error:
        return report_stop(host, environment, request.out, (error.exit_code, str(error), None, ()))
    if revisions is not None:
        base = f"base {revisions.base}" if revisions.base else "no base"
        sys.stderr.write(f"tunegate: head {revisions.head[:12]}, {base} ({revisions.reason})\n")
        sys.stderr.flush()
    progress = _progress(request, event, revisions)
    try:
        with cancellable():
            _begin(host, progress)
            before = job_results.stamps(request.out)
            with host.literal_output():
                ending = execute([*request.words, *event_words(request, event, revisions)])
            results = job_results.read_results(request.out, before, ending[0])
            ending = _require_verdict(request, ending, results)
            return _report_results(
                host, environment, _Job(request, event, progress), results, ending
            )
    except KeyboardInterrupt:
        if request.step in protocol.JUDGING:
            with suppress(TunegateError):  # the directory may be another run's
                forget_verdict(request.out, request.step)
        cancelled = (CANCELLED, "cancelled; what was finished is kept", None, ())
        return report_stop(host, environment, request.out, cancelled, _cancelled_progress(progress))
    except BaseException:
        # What has begun must end; a later report begins again.
        job_results.report_to_host(
            host, protocol.JobReport(progress=_cancelled_progress(progress)), None
        )
        raise


def report_stop(
    host: protocol.CiHost,
    environment: Mapping[str, str],
    out: Path,
    ending: Ended,
    progress: protocol.JobProgress | None = None,
) -> int:
    """Reports the error where people look: beside the job, and in its summary."""
    exit_code, text, about, others = ending
    place = job_results.place_of(about, Path())
    lines = tuple(_without_file(line, about, place) for line in (text, *others))
    problem = job_results.job_problem(lines, exit_code, environment, place)
    report = protocol.JobReport(
        outputs={"verdict": "error"},
        annotations=[problem.annotation()],
        summary=problem.markdown(),
        progress=progress,
    )
    job_results.report_to_host(host, report, out)
    return exit_code


# ---------------------------------------------------------------------------


def _without_file(line: str, about: ConfigKey | None, place: job_results.ConfigPlace | None) -> str:
    """Returns the line without the file's name, as a host shows the place itself."""
    return line.removeprefix(f"{about.file}: ") if about and place else line


def _progress(
    request: protocol.JobRequest, event: protocol.JobEvent, revisions: Revisions | None
) -> protocol.JobProgress | None:
    """Returns the beginning of a verdict, None if there will be none, or its commit is unknown."""
    commit = reported_commit(request, event, revisions)
    if request.step not in protocol.JUDGING or not commit:
        return None
    return protocol.JobProgress(name=check_words(request, event), commit=commit)


class _Job(NamedTuple):
    request: protocol.JobRequest
    event: protocol.JobEvent
    begun: protocol.JobProgress | None


def _report_results(
    host: protocol.CiHost,
    environment: Mapping[str, str],
    job: _Job,
    results: job_results.Results,
    ending: Ended,
) -> int:
    request, event, start = job
    exit_code, problem, *_ = ending
    verdict = None if problem else results.verdict
    progress = start and job_results.conclude(start, exit_code, verdict)
    _report(host, request, results, None if problem else progress)
    _comment(host, environment, request, event, results)
    if problem:
        return report_stop(host, environment, request.out, ending, progress)
    return exit_code


def _begin(host: protocol.CiHost, start: protocol.JobProgress | None) -> None:
    """Reports the beginning. A cancel waits meanwhile: an interrupted host would not know what it
    has begun."""
    if start is not None:
        with postpone():
            job_results.report_to_host(host, protocol.JobReport(progress=start), None)


def _cancelled_progress(start: protocol.JobProgress | None) -> protocol.JobProgress | None:
    return start and job_results.conclude(start, CANCELLED, None)


def _require_verdict(
    request: protocol.JobRequest, ending: Ended, results: job_results.Results
) -> Ended:
    """Returns the ending; a pass or a regression needs the verdict that this run wrote."""
    exit_code, *_ = ending
    is_judged = request.step in protocol.JUDGING
    if exit_code not in {PASS, FAIL} or (exit_code == PASS and not is_judged):
        return ending
    if is_judged and results.verdict is not None:
        return ending
    return BUG, f"a bug of tunegate: exit code {exit_code} without a verdict", None, ()


def _report(
    host: protocol.CiHost,
    request: protocol.JobRequest,
    results: job_results.Results,
    progress: protocol.JobProgress | None,
) -> None:
    report = protocol.JobReport(
        outputs=results.outputs(),
        annotations=results.annotations(request.repository, request.config),
        summary=with_links(results.markdown, _links(host, request.out), _revisions(results)),
        progress=progress,
    )
    job_results.report_to_host(host, report, request.out)


def _comment(
    host: protocol.CiHost,
    environment: Mapping[str, str],
    request: protocol.JobRequest,
    event: protocol.JobEvent,
    results: job_results.Results,
) -> None:
    choice = _choice(request, event, results)
    if choice == "leave":
        return
    refusal = _refusal(host, request, event, results, choice)
    if not refusal:
        return
    text = redact(f"{refusal}: the report is in {request.out} instead", secrets_of(environment))
    refused = protocol.Annotation(level="notice", title="tunegate: no comment", text=text)
    job_results.report_to_host(host, protocol.JobReport(annotations=[refused]), None)


def _refusal(
    host: protocol.CiHost,
    request: protocol.JobRequest,
    event: protocol.JobEvent,
    results: job_results.Results,
    choice: CommentChoice,
) -> str:
    """Returns why there is no comment, '' if there is one. The host may be a third party's."""
    report = NO_CHANGE if choice == "say that nothing changes" else results.markdown
    try:
        links = host.links(request.out)
        text = with_links(report, links, _revisions(results), job=job_in_words(request, event))
        host.comment(event, report_name(request, event), text, updates_only=choice != "write")
    except protocol.HostRefusedError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 -- it changes no verdict
        return f"the CI host failed ({type(error).__name__})"
    return ""


def _revisions(results: job_results.Results) -> Revisions | None:
    return results.verdict.revisions if results.verdict else None


def _links(host: protocol.CiHost, out: Path) -> protocol.Links:
    try:
        return host.links(out)
    except Exception:  # noqa: BLE001 -- whatever a host of others does
        return protocol.Links()


def _choice(
    request: protocol.JobRequest, event: protocol.JobEvent, results: job_results.Results
) -> CommentChoice:
    """Decides about the comment: only on the pull request whose head or merge commit was judged."""
    verdict, changes = results.verdict, results.changes
    if request.comment == "never" or verdict is None or not results.markdown:
        return "leave"
    if not is_of_pull_request(request.repository, verdict.revisions.head, event.tip):
        return "leave"
    return comment_choice(request.comment, verdict, len(changes.models) if changes else 0)


# Decides whether to write a report on its pull request. Pure.

CommentChoice = Literal["write", "update", "say that nothing changes", "leave"]


def comment_choice(when: CommentWhen, verdict: Verdict, changed_models: int) -> CommentChoice:
    """Returns what to do with the comment. A report that nobody waits for replaces an earlier one,
    but is not the first: an old alarm must not stay once it is over."""
    if when == "never":
        return "leave"
    is_weaker = any(policy_change.weakens for policy_change in verdict.policy_changes)
    is_less_exact = any(finding.accuracy and finding.accuracy.moved for finding in verdict.findings)
    is_alert = verdict.exit_code != PASS or is_weaker or is_less_exact
    if when == "always" or is_alert:
        return "write"
    is_change = bool(changed_models or verdict.findings or verdict.policy_changes)
    if not is_change:
        return "say that nothing changes"
    return "write" if when == "on-change" else "update"


# The name of a report among those on one pull request: two jobs, or two configurations, must not
# overwrite each other's. Pure.

_DEFAULT_OUT, _DEFAULT_CONFIG = ".tunegate", "tunegate.yaml"


def report_name(request: protocol.JobRequest, event: protocol.JobEvent) -> str:
    """Returns the name by which a later run of the same job finds the report. It contains a digest,
    as job names may have any characters."""
    parts = (_config(request), event.job, event.matrix)
    out = _in_checkout(request.out, request)
    if parts == (_DEFAULT_CONFIG, "", ""):
        return out
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return f"{out}-{digest}"


def job_in_words(request: protocol.JobRequest, event: protocol.JobEvent) -> str:
    """Returns the reporting job for people, '' if the CI does not name it."""
    job = f"{event.job} ({event.matrix})" if event.matrix else event.job
    config = _config(request)
    return job if config == _DEFAULT_CONFIG else ", ".join(filter(None, (job, config)))


def check_words(request: protocol.JobRequest, event: protocol.JobEvent) -> str:
    """Returns what distinguishes this job's check from others beside the commit, as of two with one
    name only the later is shown; '' if nothing does."""
    usual = {_DEFAULT_OUT, _DEFAULT_CONFIG, ""}
    parts = (event.job, event.matrix, _config(request), _in_checkout(request.out, request))
    return ", ".join(each for each in parts if each not in usual)


def _config(request: protocol.JobRequest) -> str:
    """Returns the configuration's path in the repository."""
    return _in_checkout(request.config, request)


def _in_checkout(path: Path, request: protocol.JobRequest) -> str:
    """Returns a path in the repository from its root, wherever the runner keeps that, and any other
    as it is given. The file may be a link of the head, which must not choose the name."""
    root, place = where_it_leads(request.repository), where_it_leads(path.parent) / path.name
    return (place.relative_to(root) if place.is_relative_to(root) else path).as_posix()


# The event's decisions as words of a command line. Pure.


def event_words(
    request: protocol.JobRequest, event: protocol.JobEvent, revisions: Revisions | None
) -> list[str]:
    """Returns the words, always as `--name=value`, so that no value can be taken for an option.

    Later steps refuse a plan of other revisions. Each may write to the cache: what it found out
    about schedules, or what the history keeps.
    """
    compared = (
        _words_for_requested(request)
        if revisions is None
        else _words_for_revisions(request, revisions)
    )
    if revisions is not None and request.step in protocol.PLANNING:
        compared.append(f"--chosen-by={revisions.reason}")
    return [*compared, *_trust(request, event)]


def _words_for_revisions(request: protocol.JobRequest, revisions: Revisions) -> list[str]:
    base = ["--no-base"] if revisions.base is None else [f"--base={revisions.base}"]
    commit = request.policy or revisions.policy
    policy = [f"--policy={commit}"] if commit else []
    return [f"--head={revisions.head}", *base, *policy]


def _words_for_requested(request: protocol.JobRequest) -> list[str]:
    """Returns the words for base and head; the command finds the release before, as its
    configuration has the tag pattern."""
    job = request.asked
    chooses = job.since_release and request.step in protocol.PLANNING
    head = [f"--head={job.head}"] if job.head else []
    return ["--since-release", *head] if chooses else head


def _trust(request: protocol.JobRequest, event: protocol.JobEvent) -> list[str]:
    """Returns the words for the cache: a job that may write no zone, such as a fork's, only reads,
    whatever else is requested."""
    if event.zone is None:
        return [] if request.is_without_cache else ["--cache-mode=ro"]
    zone = request.zone or event.zone
    return [f"--zone={zone}"] if zone else []


# Finds the revisions of an event in a repository.

_BRANCH = re.compile(r"[^\x00-\x20\x7f~^:?*\[\\]{1,250}")
"""Names that git allows for a branch."""


def job_revisions(request: protocol.JobRequest, event: protocol.JobEvent) -> Revisions | None:
    """Returns the revisions. Every step checks that the checkout belongs to the event. A later step
    refuses a plan of other revisions; None if looking again may find others, as on a moved branch.

    Raises RevisionError, and NoBaselineError or EnvironmentUnfitError if a required base cannot be
    had.
    """
    repository, revisions = GitRepository(request.repository), request.asked
    if not revisions.head:
        _require_checkout(repository, event)
    is_later = request.step not in protocol.PLANNING
    if revisions.since_release or (is_later and not _is_settled(revisions, event.revisions)):
        return None
    if revisions.no_base:
        return repository.revisions_without_base(revisions.head or None)
    if revisions.base or revisions.head:
        return repository.revisions(revisions.base or None, revisions.head or None)
    return _name_target(_find_revisions(repository, event), event)


def _name_target(revisions: Revisions, event: protocol.JobEvent) -> Revisions:
    """Names the target branch in the reason: a pull request may get another target."""
    choice, target = event.revisions, event.target
    if not target and isinstance(choice, protocol.MergeBase) and not is_commit_id(choice.target):
        target = choice.target
    if not _BRANCH.fullmatch(target):
        return revisions
    return msgspec.structs.replace(
        revisions, reason=f"pull request into {target}: {revisions.reason}"
    )


def is_of_pull_request(path: Path, commit: str, tip: str) -> bool:
    """Returns whether the commit is the head of the pull request with this tip, or its merge
    commit."""
    return bool(tip) and GitRepository(path).is_of_pull_request(commit, tip)


def reported_commit(
    request: protocol.JobRequest, event: protocol.JobEvent, revisions: Revisions | None
) -> str:
    """Returns the commit that people look at: a pull request's head, not its merge commit. '' if
    the event is not about the judged commit, or it is not known yet."""
    if revisions is None and request.asked.head:
        return ""
    head = revisions.head if revisions else ""
    try:
        is_tip = not head or is_of_pull_request(request.repository, head, event.tip)
    except TunegateError:
        is_tip = False
    if is_tip and event.tip:
        return event.tip
    return event.checked_out if head in {"", event.checked_out} else ""


def _require_checkout(repository: GitRepository, event: protocol.JobEvent) -> None:
    """Raises unless the checkout belongs to the event."""
    is_merged = (
        isinstance(event.revisions, protocol.MergeBase) and event.tip and not event.checked_out
    )
    if is_merged or isinstance(event.revisions, protocol.MergeCommit):
        repository.require_pull_request(event.tip)
    if event.checked_out:
        repository.require_checked_out(event.checked_out)


def _is_settled(requested: protocol.AskedRevisions, choice: protocol.RevisionChoice) -> bool:
    """Returns whether the event alone gives both commits."""
    return not (requested.base or requested.head) and isinstance(
        choice, protocol.MergeCommit | protocol.Range
    )


def _find_revisions(repository: GitRepository, event: protocol.JobEvent) -> Revisions:
    match event.revisions:
        case protocol.MergeCommit(base_tip=base_tip, head_tip=head_tip):
            return repository.merge_commit_revisions(base_tip, head_tip, event.target)
        case protocol.MergeBase(target=target):
            return repository.merge_base_revisions(target)
        case protocol.Push(
            before=before, after=after, default_branch=branch, is_default=is_default
        ):
            return repository.push_revisions(before, after, branch, is_default=is_default)
        case protocol.Range(base=base, head=head):
            return repository.range_revisions(base, head)
        case protocol.Usual(default_branch=branch, is_on_it=True):
            return repository.parent_revisions(branch)
        case protocol.Usual(default_branch=branch, is_here_enough=is_enough):
            return repository.usual_revisions(branch, is_here_enough=is_enough)
    assert_never(event.revisions)
