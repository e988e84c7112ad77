from __future__ import annotations

import msgspec
import pytest

from tests.report.budgeted import AFTER, BEFORE
from tests.support.report_parts import finding, verdict
from tests.support.reports import make_report
from tunegate.artifacts.builds import ShippedErrors
from tunegate.artifacts.verdicts import Verdict
from tunegate.ci.job import comment_choice
from tunegate.settings import CommentWhen

QUIET = verdict("pass", 0)
CHANGED = verdict("pass", 0, finding("pass", ""))
ALARM = verdict("fail", 1, finding("fail", "slower"))
LOOSENED = msgspec.structs.replace(
    QUIET, policy_changes=make_report("loosened").verdict.policy_changes
)
NOTHING = "say that nothing changes"


@pytest.mark.parametrize(
    ("when", "quiet", "changed", "alarm", "loosened"),
    [
        ("always", "write", "write", "write", "write"),
        ("on-change", NOTHING, "write", "write", "write"),
        ("on-alert", NOTHING, "update", "write", "write"),
        ("never", "leave", "leave", "leave", "leave"),
    ],
)
def test_a_mode_writes_what_somebody_waits_for(
    when: CommentWhen, quiet: str, changed: str, alarm: str, loosened: str
) -> None:
    cases = ((QUIET, quiet), (CHANGED, changed), (ALARM, alarm), (LOOSENED, loosened))
    for found, wanted in cases:
        assert comment_choice(when, found, 0) == wanted


@pytest.mark.parametrize("status", ["inconclusive", "error", "invalid-env", "no-baseline"])
def test_what_blocks_a_merge_is_an_alert(status: str) -> None:
    blocked: Verdict = msgspec.structs.replace(ALARM, status=status, exit_code=3)
    assert comment_choice("on-alert", blocked, 0) == "write"


def test_a_changed_model_that_needs_no_check_is_a_change() -> None:
    assert comment_choice("on-change", QUIET, 1) == "write"


def test_an_error_that_got_larger_for_nothing_is_an_alert() -> None:
    moved = ShippedErrors(base=BEFORE, head=AFTER, moved=("max-error",))
    found = verdict("pass", 0, finding("pass", "", accuracy=moved))
    assert comment_choice("on-alert", found, 1) == "write"
