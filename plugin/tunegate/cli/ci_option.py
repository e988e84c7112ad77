"""A command line with `--ci`, as what a job of a CI asks for. Imports nothing of what does it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tunegate.ci_hosts.protocol import AskedRevisions
from tunegate.ci_job.request import JobRequest, StepName
from tunegate.cli.named_command import HELP_FLAGS
from tunegate.cli.parser import Parsed, parse
from tunegate.cli.shared_options import CiJob
from tunegate.errors import ConfigError

_FLAG = "--ci"


class AskedJob(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for, and the CI that it is asked in."""

    ci: str
    request: JobRequest


def asked_job(arguments: Sequence[str]) -> AskedJob | None:
    """None without the option, and for a line that is no command: nobody is told of that."""
    if not any(word.partition("=")[0] == _FLAG for word in arguments):
        return None
    if not HELP_FLAGS.isdisjoint(arguments):
        return None
    try:
        asked = parse(arguments)
    except ConfigError:
        return None
    job = getattr(asked.options, "job", None)
    if not isinstance(job, CiJob):
        return None
    return AskedJob(ci=job.ci, request=_request(asked, job, arguments))


def _request(asked: Parsed, job: CiJob, arguments: Sequence[str]) -> JobRequest:
    """The last of two equal options counts: the words end with the one that makes this no job."""
    settings = asked.options.settings
    return JobRequest(
        words=(*arguments, f"{_FLAG}="),
        step=msgspec.convert(asked.command.name, StepName),
        out=settings.out,
        repository=settings.repository,
        config=settings.config or settings.repository / "tunegate.yaml",
        asked=AskedRevisions(
            base=settings.base or "",
            head=settings.head or "",
            since_release=settings.since_release,
        ),
        policy=settings.policy or "",
        zone=settings.overrides.zone or "",
        is_without_cache=settings.overrides.cache_mode == "off",
        comment=job.comment,
    )
