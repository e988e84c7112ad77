"""Reads a command line as the request of a CI job. Imports nothing that carries it out."""

from collections.abc import Sequence

import msgspec

from tunegate.ci.protocol import AskedRevisions, JobRequest, StepName
from tunegate.cli.parse import HELP_FLAGS, Parsed, parse
from tunegate.cli.shared_options import CiJob
from tunegate.errors import ConfigError

_AUTO = "auto"
_FLAG = "--ci"


class AskedJob(msgspec.Struct, frozen=True, kw_only=True):
    """The request of a command line, and its CI. `is_named` is false if the command line names no
    CI: it may then be no job. `is_json` output is for a program."""

    ci: str
    is_named: bool
    is_json: bool
    request: JobRequest


def asked_job(arguments: Sequence[str]) -> AskedJob | None:
    """Returns the request of a command line, None for a command that is never a job and for a line
    that names no command."""
    if not HELP_FLAGS.isdisjoint(arguments):
        return None
    try:
        asked = parse(arguments)
    except ConfigError:
        return None
    job = getattr(asked.options, "job", None)
    if not isinstance(job, CiJob):
        return None
    is_named = any(word.partition("=")[0] == _FLAG for word in arguments)
    return AskedJob(
        ci=job.ci if is_named else _AUTO,
        is_named=is_named,
        is_json=asked.options.settings.as_json,
        request=_request(asked, job, arguments),
    )


def _request(parsed: Parsed, job: CiJob, arguments: Sequence[str]) -> JobRequest:
    """Returns the job's request. Of equal options the last counts, so the words end with the one
    that makes this no job."""
    settings = parsed.options.settings
    return JobRequest(
        words=(*arguments, f"{_FLAG}="),
        step=msgspec.convert(parsed.command.name, StepName),
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
