"""The request of a CI job."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from tunegate.ci.protocol import AskedRevisions
from tunegate.settings import CommentWhen

StepName = Literal["run", "plan", "tune", "gate", "measure", "verdict"]
PLANNING: frozenset[StepName] = frozenset({"run", "plan"})
JUDGING: frozenset[StepName] = frozenset({"run", "gate", "verdict"})


class JobRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`words` are the command line without what the event decides, which comes after them. The
    other fields are what they say there."""

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
