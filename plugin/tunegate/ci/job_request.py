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
