"""What a job of a CI asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from tunegate.ci_hosts.protocol import AskedRevisions

StepName = Literal["run", "plan", "tune", "gate"]
CommentWhen = Literal["always", "never"]
PLANNING: frozenset[StepName] = frozenset({"run", "plan"})
JUDGING: frozenset[StepName] = frozenset({"run", "gate"})


class JobRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`words` are the command line without what the event decides. `step` and `out`
    are what it says there, too."""

    words: tuple[str, ...]
    step: StepName
    out: Path
    asked: AskedRevisions = AskedRevisions()
    comment: CommentWhen = "never"
