from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.ci.events import zone_of_branch, zone_of_pull_request, zone_of_queue
from tunegate.errors import ConfigError

ZONE = re.compile(r"pr(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+")


def test_only_the_default_branch_is_main() -> None:
    assert zone_of_branch("a/b", "main", "main") == "main"
    assert zone_of_branch("a/b", "main", "trunk") == "pr/a/b/branch_main"
    assert zone_of_branch("a/b", "", "") == "pr/a/b/branch_"
    assert zone_of_queue("a/b") == "pr/a/b/queue"


@given(st.text(max_size=150), st.text(max_size=150))
def test_a_branch_is_a_zone_of_its_project_or_refused(project: str, branch: str) -> None:
    try:
        found = zone_of_branch(project, branch, "main")
    except ConfigError:
        return
    assert found == "main" or (ZONE.fullmatch(found) and len(found) <= 120)
    assert found != "main" or branch == "main"


@pytest.mark.parametrize("project", ["", "/", "..", "a/../b", "a//b", "a b", "-x", "é"])
def test_what_names_no_project_is_refused(project: str) -> None:
    with pytest.raises(ConfigError, match="name no project"):
        zone_of_pull_request(project, 7)


def test_long_names_have_zones_of_their_own() -> None:
    zones = {zone_of_pull_request("/".join(["group"] * 30), number) for number in (7, 8)}
    assert len(zones) == 2
    assert all(zone.startswith("pr/long/") and len(zone) <= 120 for zone in zones)
