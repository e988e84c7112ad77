from __future__ import annotations

import msgspec
import pytest

from tests.support.plans import plan_of
from tests.support.tuning_tasks import make_task
from tunegate.cli.handlers.steps import show_plan


def test_a_cache_that_refuses_to_be_read_is_a_line_of_the_plan(
    capsys: pytest.CaptureFixture[str],
) -> None:
    planned = plan_of([make_task("a")])
    refused = "cache: s3://b: AccessDenied; to list is not tried again in this run"
    use = msgspec.structs.replace(planned.resolution.cache, notes=(refused,))
    resolution = msgspec.structs.replace(planned.resolution, cache=use)
    show_plan(msgspec.structs.replace(planned, resolution=resolution))
    assert f"  note: {refused}" in capsys.readouterr().out.splitlines()
