"""The part of the cache that a job of a CI may write, by its project and by what it is about."""

from __future__ import annotations

import hashlib
import re

from tunegate.ci_hosts.job_variables import contradiction

MAIN = "main"
_MAX_CHARACTERS = 120
_PROJECT = re.compile(r"[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_][\w.-]*)*", re.ASCII)


def zone_of_pull_request(project: str, number: int) -> str:
    """Raises ConfigError for a project that cannot be a part of a zone."""
    return _zone(project, str(number))


def zone_of_branch(project: str, branch: str, default_branch: str) -> str:
    """Other branches than the default one may not teach the main zone. Where nobody says which
    branch that is, none may. Raises ConfigError."""
    if branch and branch == default_branch:
        return MAIN
    plain = "".join(c if c.isalnum() and c.isascii() else "_" for c in branch)
    return _zone(project, f"branch_{plain}")


def zone_of_queue(project: str) -> str:
    """The zone of a merge queue. Raises ConfigError."""
    return _zone(project, "queue")


def _zone(project: str, part: str) -> str:
    """Names of projects and branches can be long; a zone cannot."""
    if not _PROJECT.fullmatch(project):
        raise contradiction("its variables name no project")
    zone = f"pr/{project}/{part}"
    if len(zone) <= _MAX_CHARACTERS:
        return zone
    return f"pr/long/{hashlib.sha256(zone.encode()).hexdigest()[:32]}"
