"""A pull request of an attacker, in a repository of its own."""

from pathlib import Path

import pytest

from tests.adversary.pull_request import PullRequest


@pytest.fixture
def pull_request(tmp_path: Path) -> PullRequest:
    return PullRequest(tmp_path)
