from __future__ import annotations

import pytest

from tests.support.tuning_records import make_key
from tunegate.cli.handlers.table import show_revalidation
from tunegate.tune.revalidation import Revalidated


def test_every_task_has_a_row_and_the_taken_ones_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    results = (
        Revalidated(name="conv", key=make_key(), status="taken", claimed_ms=1.25, measured_ms=1.5),
        Revalidated(
            name="dense", key=make_key("d"), status="rejected", claimed_ms=2.0, is_implausible=True
        ),
    )
    show_revalidation("promoted", results)
    lines = capsys.readouterr().out.splitlines()
    conv, dense = (next(line for line in lines if name in line) for name in ("conv", "dense"))
    assert conv.split() == ["conv", "taken", "1.25", "1.5"]
    assert dense.split() == ["dense", "rejected", "2", "not", "what", "was", "claimed"]
    assert "better records now: 1 of 2 tasks" in lines
