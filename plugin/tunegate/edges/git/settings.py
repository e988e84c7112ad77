"""The settings that git gets: nothing of the repository's settings starts a program here, except
what a fetch needs, or changes what is read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "LC_ALL": "C",
}
_PROTOCOLS = ("file", "git", "http", "https", "ssh")
_NO_PROTOCOLS = ("ext", "fd")
"""Their address is a command, or a number of a file that is open."""
_OF_ANOTHER_REPOSITORY = (
    *("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_PREFIX"),
    *("GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
    *("GIT_GRAFT_FILE", "GIT_SHALLOW_FILE", "GIT_REPLACE_REF_BASE", "GIT_NAMESPACE"),
    *("GIT_EXTERNAL_DIFF", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_CONFIG"),
)
"""The variables that name the repository of a hook while it runs."""
SETTINGS = {
    "safe.bareRepository": "explicit",
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.alternateRefsCommand": "true",
    "core.quotePath": "false",
    "log.showSignature": "false",
    # A fetch may start `gc --auto`, which lives on behind us and repacks what we read.
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_OF_A_FETCH = (
    *("core.sshcommand", "core.gitproxy", "core.askpass", "credential.", "remote.", "url."),
    *("http.", "https.", "ssh.", "uploadpack.", "lfs.", "extensions."),
)
"""Settings that stay as they are, because a fetch needs them: they name servers and programs."""


def git_environment(root: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """The environment for git in this working tree, whatever repository the variables name."""
    kept = dict(variables)
    for name in _OF_ANOTHER_REPOSITORY:
        kept.pop(name, None)
    wanted = kept.get("GIT_ALLOW_PROTOCOL", ":".join(_PROTOCOLS)).split(":")
    return {
        **kept,
        **_ENVIRONMENT,
        "GIT_CEILING_DIRECTORIES": str(root.parent),
        "GIT_ALLOW_PROTOCOL": ":".join(each for each in wanted if each not in _NO_PROTOCOLS),
    }


def is_of_a_fetch(key: str) -> bool:
    return key.lower().startswith(_OF_A_FETCH)
