"""The attack that every other one hides: a model that is twice as slow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adversary.pull_request import PullRequest

pytestmark = pytest.mark.e2e


def test_a_model_that_is_twice_as_slow_fails(tmp_path: Path) -> None:
    pull_request = PullRequest(tmp_path)
    pull_request.make_twice_as_slow()
    judged = pull_request.judge()
    assert judged.exit_code == 1, judged.err
    assert judged.status() == "fail"


def test_the_same_model_passes(tmp_path: Path) -> None:
    pull_request = PullRequest(tmp_path)
    pull_request.write("README.md", "words")
    judged = pull_request.judge()
    assert judged.exit_code == 0, judged.err
