"""The revisions of a push, as pre-commit passes them to its hooks. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tunegate.settings import Settings


def pushed_revisions(
    settings: Settings, variables: Mapping[str, str], default_branch: str
) -> Settings:
    """The settings with the commit that is pushed as their head. A push to the default branch is
    compared with what the remote has there, any other with where its branch left that one: a second
    push does not hide the first. Run by hand, it is about the usual revisions.
    """
    head = settings.head or variables.get("PRE_COMMIT_TO_REF")
    if not head:
        return settings
    branch = variables.get("PRE_COMMIT_REMOTE_BRANCH", "").removeprefix("refs/heads/")
    before = variables.get("PRE_COMMIT_FROM_REF") if branch in {"", default_branch} else None
    return msgspec.structs.replace(settings, base=settings.base or before, head=head)
