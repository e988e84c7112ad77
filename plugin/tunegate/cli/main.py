"""The command line: parses it, carries it out, and turns the result into an exit code.

`cli/entry.py` reports failures to import this. stdout carries the product, stderr the messages.
"""

import importlib
import os
import platform
import shlex
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from tunegate import __version__, errors
from tunegate.artifacts import artifact_io
from tunegate.artifacts.verdicts import Verdict
from tunegate.ci.protocol import AskedRevisions, JobRequest, StepName
from tunegate.cli.entry import flush
from tunegate.cli.help_pages import page
from tunegate.cli.parse import HELP_FLAGS, Parsed, parse
from tunegate.cli.shared_options import CiJob, Common, Options
from tunegate.cli.unexpected import Ending, as_full_disk, explain_error
from tunegate.redaction import redact, redact_word, secrets_of
from tunegate.regular_files import temporary_directory
from tunegate.report.escape import drawn_as_text, visible
from tunegate.system.output.directory import forget_verdict
from tunegate.system.output.log_file import LogFile, Talk, talking, without_commands
from tunegate.system.processes.signals import cancellable

_MAX_PROBLEM = 4000
"""The most characters of a message: names in it come from the checkout."""
_AUTO = "auto"
_FLAG = "--ci"


class AskedJob(msgspec.Struct, frozen=True, kw_only=True):
    """The request of a command line, and its CI. `is_named` is false if the command line names no
    CI: it may then be no job. `is_json` output is for a program."""

    ci: str
    is_named: bool
    is_json: bool
    request: JobRequest


def main(arguments: Sequence[str]) -> int:
    """Does what the arguments ask, and returns the documented exit code."""
    job = asked_job(arguments)
    return _report(execute(arguments)) if job is None else _run_in_job(job, arguments)


def _run_in_job(job: AskedJob, arguments: Sequence[str]) -> int:
    from tunegate.ci.registry import command_host  # noqa: PLC0415 -- few need it

    try:
        host = command_host(job.ci, os.environ, is_named=job.is_named, is_json=job.is_json)
    except errors.TunegateError as error:
        return _report(Ending(error.exit_code, str(error)))
    if host is None:
        return _report(execute(arguments))
    from tunegate.ci.job import run_job  # noqa: PLC0415 -- nor this

    code = run_job(host, os.environ, job.request, execute)
    give_up_lost_output()
    return code


def give_up_lost_output() -> None:
    """Gives up a standard output that cannot be written: the CI has the verdict, and what is lost
    are words beside it."""
    if problem := flush(sys.stdout):
        sys.stderr.write(f"tunegate: standard output is lost ({problem})\n")


def _report(ending: Ending) -> int:
    with suppress(OSError):  # the terminal may be what was lost
        for each in ending.problems:
            problem = redact(each, secrets_of(os.environ))
            line = without_commands(visible(problem, _MAX_PROBLEM))
            sys.stderr.write(f"tunegate: error: {line}\n")
        sys.stderr.flush()
    return ending.exit_code


def execute(arguments: Sequence[str]) -> Ending:
    """Carries out a command line, and returns how it ended, with the problems not yet reported."""
    with talking() as talk:
        ending = _ending(arguments, talk)
        for problem in ending.problems:
            talk.note(f"tunegate: error: {problem}\n")
        talk.note(f"exit code {ending.exit_code}\n")
        return ending


def _ending(arguments: Sequence[str], talk: Talk) -> Ending:
    verbose = "-v" in arguments or "--verbose" in arguments
    call: Parsed | None = None
    try:
        with cancellable():
            if text := page(arguments):
                sys.stdout.write(text)
                return Ending(errors.PASS)
            call = parse(arguments)
            _begin(talk, call.options.common, arguments)
            return Ending(_carry_out(call))
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 -- one line, always
        say = talk.write if verbose else talk.note
        say(_inert_traceback(traceback.format_exc()))
        return _ending_of_error(error, call, talk)


def _inert_traceback(text: str) -> str:
    """Returns a traceback as inert text: what it quotes of a checkout draws nothing on a terminal,
    and begins no line, which a CI might take for a command."""
    lines = redact(text, secrets_of(os.environ)).splitlines()
    return "".join(f"| {drawn_as_text(line)}\n" for line in lines)


def _begin(talk: Talk, common: Common, arguments: Sequence[str]) -> None:
    """Starts the messages and the log. Raises OutputError if the log file cannot be written."""
    log = None if common.log_file is None else LogFile(common.log_file)
    talk.begin(quiet=common.quiet, verbose=common.verbose, log=log)
    secrets = secrets_of(os.environ)  # a shell's quotes would hide one
    line = shlex.join(redact_word(word, secrets) for word in arguments)
    talk.note(f"tunegate {__version__}, Python {platform.python_version()}: {line}\n")


def _carry_out(call: Parsed) -> int:
    if call.command.replaces_verdict:
        forget_verdict(call.options.common.out, call.command.name)
    return as_written(_handler(call.command.handler)(call.options), call)


def _handler(reference: str) -> Callable[[Options], int]:
    """Imports the handler when the command runs: plotting and statistics take two seconds to
    import, and most commands need neither."""
    module, _, name = reference.partition(":")
    function: Callable[[Options], int] = getattr(importlib.import_module(module), name)
    return function


def _ending_of_error(error: BaseException, call: Parsed | None, talk: Talk) -> Ending:
    if isinstance(error, Exception):
        error = as_full_disk(error, _output_directories(call))
    if isinstance(error, errors.TunegateError) and (
        error.exit_code == errors.CANCELLED or not errors.was_cancelled(error)
    ):
        if isinstance(error, errors.ConfigError):
            return Ending(error.exit_code, str(error), error.about, error.others)
        return Ending(error.exit_code, str(error))
    ending = explain_error(error)
    if ending.exit_code == errors.CANCELLED and call is not None and call.command.replaces_verdict:
        return Ending(
            errors.CANCELLED, f"cancelled: {_describe_leftovers(call.options.common.out)}"
        )
    if ending.exit_code != errors.BUG:
        return ending
    return Ending(
        errors.BUG, f"{ending.problem}. Please report it with {_report_of(error, talk.log)}."
    )


def _describe_leftovers(out: Path) -> str:
    """Returns a sentence on what a cancelled command leaves, and where."""
    if not out.is_dir():  # it was cancelled before it began to work
        return "there is no verdict"
    return (
        "there is no verdict. What tuning finished is in the cache where cache.mode is rw, and the "
        f"logs and all else of this run are in {out}"
    )


def _output_directories(call: Parsed | None) -> list[Path]:
    """Returns the directories that were written to."""
    out = [call.options.common.out] if call else []
    return [*out, temporary_directory()]


def _report_of(error: BaseException, log_file: LogFile | None) -> str:
    """Returns what to send with a bug report: this run's log, or advice to make one."""
    if log_file is not None:
        return f"the log {log_file.path}"
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="tunegate-", suffix=".log", delete=False, encoding="utf-8"
        ) as log:
            traceback.print_exception(error, file=log)
    except OSError:
        return "what `--verbose` shows"
    return f"the log {Path(log.name)}"


# A judging command's exit code is that of the verdict it wrote: nothing else can be green, and
# nothing else can be a regression.


def as_written(exit_code: int, call: Parsed) -> int:
    """Returns the exit code. Raises TunegateError, a bug of ours, if no written verdict has it."""
    if not call.command.judges:
        if exit_code == errors.FAIL:
            raise errors.TunegateError(_bug(exit_code, f"{call.command.name} judges nothing"))
        return exit_code
    try:
        verdict = artifact_io.read(call.options.common.out / "verdict.json", Verdict)
    except errors.ArtifactError as error:
        raise errors.TunegateError(_bug(exit_code, str(error))) from error
    if verdict.exit_code != exit_code or (exit_code == errors.FAIL) != (verdict.status == "fail"):
        status = f"the written verdict is {verdict.status}, exit code {verdict.exit_code}"
        raise errors.TunegateError(_bug(exit_code, status))
    return exit_code


def _bug(exit_code: int, why: str) -> str:
    return f"a bug of tunegate (exit code {exit_code}, but {why}). Please report it."


# A command line as the request of a CI job.


def asked_job(arguments: Sequence[str]) -> AskedJob | None:
    """Returns the request of a command line, None for a command that is never a job and for a line
    that names no command."""
    if not HELP_FLAGS.isdisjoint(arguments):
        return None
    try:
        call = parse(arguments)
    except errors.ConfigError:
        return None
    job = getattr(call.options, "job", None)
    if not isinstance(job, CiJob):
        return None
    is_named = any(word.partition("=")[0] == _FLAG for word in arguments)
    return AskedJob(
        ci=job.ci if is_named else _AUTO,
        is_named=is_named,
        is_json=call.options.settings.as_json,
        request=_request(call, job, arguments),
    )


def _request(call: Parsed, job: CiJob, arguments: Sequence[str]) -> JobRequest:
    """Returns the job's request. Of equal options the last counts, so the words end with the one
    that makes this no job."""
    settings = call.options.settings
    return JobRequest(
        words=(*arguments, f"{_FLAG}="),
        step=msgspec.convert(call.command.name, StepName),
        out=settings.out,
        repository=settings.repository,
        config=settings.config or settings.repository / "tunegate.yaml",
        asked=AskedRevisions(
            base=settings.base or "",
            head=settings.head or "",
            since_release=settings.since_release,
            no_base=settings.no_base,
        ),
        policy=settings.policy or "",
        zone=settings.overrides.get("cache.zone") or "",
        is_without_cache=settings.overrides.get("cache.mode") == "off",
        comment=job.comment,
    )
