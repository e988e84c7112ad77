"""The commit of our own repository that this installation comes from, for workflows to pin."""

import json
import re
from importlib import resources
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import msgspec

from tunegate.errors import TunegateError
from tunegate.system.git.process import GitProcess

_STAMP = re.compile(r"(v\d+\.\d+\.\d+) ([0-9a-f]{40})\s*")
_COMMIT = re.compile(r"[0-9a-f]{40}")


class InstalledCommit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit, and the address of its repository."""

    source: str
    """Such as https://example.com/owner/name."""
    commit: str
    release: str = ""
    """The tag, such as v1.2.3; empty if it is no release."""

    @property
    def repository(self) -> str:
        return repository_of(self.source)


def installed_commit() -> InstalledCommit | None:
    """Returns the commit that the release workflow wrote into the distribution, else the one that
    pip installed, else an editable installation's checkout. None if it is unknown."""
    try:
        ours = distribution("tunegate")
    except PackageNotFoundError:
        return None
    stamp = (resources.files("tunegate") / "released.txt").read_text(encoding="utf-8")
    commit = _from_stamp(stamp, ours) or _from_origin(ours)
    return commit if commit and commit.source else None


def repository_of(source: str) -> str:
    """Returns owner and name: the path of the address."""
    return urlsplit(source).path.strip("/").removesuffix(".git")


def public_address() -> str:
    """Returns the address of the project, whichever commit is installed."""
    try:
        return public_source(distribution("tunegate"))
    except PackageNotFoundError:
        return ""


def public_source(distribution: Distribution) -> str:
    """Returns the project's address in `pyproject.toml`."""
    urls = dict(line.split(", ", 1) for line in distribution.metadata.get_all("Project-URL") or [])
    return str(urls.get("Source", ""))


def _from_stamp(stamp: str, distribution: Distribution) -> InstalledCommit | None:
    match = _STAMP.fullmatch(stamp)
    if not match:
        return None
    return InstalledCommit(source=public_source(distribution), commit=match[2], release=match[1])


def _from_origin(distribution: Distribution) -> InstalledCommit | None:
    """Returns the commit in pip's record of the distribution's origin (PEP 610)."""
    origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    address = urlsplit(str(origin.get("url", "")))
    commit = str(origin.get("vcs_info", {}).get("commit_id", ""))
    if address.scheme == "https" and _COMMIT.fullmatch(commit):
        place = address.hostname if address.port is None else f"{address.hostname}:{address.port}"
        path = address.path.rstrip("/").removesuffix(".git")
        return InstalledCommit(source=f"https://{place}{path}", commit=commit)
    if address.scheme == "file" and origin.get("dir_info", {}).get("editable"):
        return _from_checkout(Path(url2pathname(address.path)), distribution)
    return None


def _from_checkout(checkout: Path, distribution: Distribution) -> InstalledCommit | None:
    try:
        head = GitProcess(checkout).text("rev-parse", "HEAD")
    except TunegateError:
        return None
    return (
        InstalledCommit(source=public_source(distribution), commit=head.strip()) if head else None
    )
